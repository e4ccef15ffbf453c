"""Bursts that join a root: jobs over all of them, lost pods, and errors of a burst."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_pods import UNSHARE, Flux
from burst_pods import Side, Sides, status, submit
from minicluster.burst import machines, plan
from minicluster.burst.address import Address
from minicluster.burst.demand import Offer, root_jobs
from minicluster.lead import program
from minicluster.render import curve
from minicluster.render.load import load

from tools.clients import WAIT_SECONDS, until
from tools.releases import MOUNT

BURSTS = [{"name": "b0", "size": 2}, {"name": "b1", "size": 2, "cores": 2}]
QUIET = {"logging": {"quiet": True}}
VALUES = {"size": 2, "flux": {"bursting": {"clusters": BURSTS}}}
#: What flux-core before 0.68 does with a burst that has another host table
TAKES_ALL = "it compares no host tables"


@pytest.fixture
def sides(flux: Flux, tmp_path: Path) -> Iterator[Sides]:
    sides = Sides(tmp_path, flux)
    yield sides
    sides.end()


def hostnames(side: Any, nodes: int) -> list[str]:
    """Return the hosts that the tasks of a job over ``nodes`` nodes run on."""
    printed = side.lead.flux("run", f"-N{nodes}", f"-n{nodes}", "flux", "getattr", "hostname")
    return sorted(printed.split())


def test_jobs_run_over_a_root_and_two_bursts_that_join_and_leave(sides: Sides) -> None:
    root = sides.start_root({**VALUES, **QUIET})
    assert root.up() == "0-1"
    first = sides.burst("b0", 1).start()
    second = sides.burst("b1", 2).start()
    until(lambda: root.up() == "0-2,4-5")
    assert hostnames(root, 5) == ["b0-0", "b1-0", "b1-1", "root-0", "root-1"]
    # a burst grows up to the size that the root has registered, with the cores that are registered
    first.start([1])
    until(lambda: root.up() == "0-5")
    assert root.lead.flux("resource", "list", "-n", "-s", "up", "-o", "{nnodes} {ncores}") == "6 8\n"
    second.end()
    until(lambda: root.up() == "0-3")
    assert hostnames(root, 4) == ["b0-0", "b0-1", "root-0", "root-1"]
    sides.burst("b1", 1).start()
    until(lambda: root.up() == "0-4")
    # when the instance ends, the bursts end
    root.lead.shut_down()
    assert root.wait() == [0, 0]
    assert first.wait() == [0, 0]
    assert [pod.log for pod in [*root.pods.values(), *first.pods.values()]] == [""] * 4


GROUPS = [{"name": "large", "size": 0, "maxSize": 2, "cores": 2, "properties": ["fat"]}]


def test_the_hosts_of_a_group_are_between_those_of_the_root_and_of_its_bursts(sides: Sides, flux: Flux) -> None:
    root = sides.start_root({**VALUES, **QUIET, "groups": GROUPS})
    second = sides.burst("b1", 2).start()
    until(lambda: root.up() == "0-1,6-7")
    group = root.start_group("large", 1)
    until(lambda: root.up() == "0-1,3,6-7")
    assert root.lead.flux("resource", "list", "-n", "-s", "up", "-o", "{nnodes} {ncores}") == "5 8\n"
    assert hostnames(root, 5) == ["b1-0", "b1-1", "root-0", "root-1", "root-large-1"]
    # each by the words that choose it
    for words, hosts in (
        (("-n2", "--requires=large"), ["root-large-1"] * 2),
        (("-n1", "--requires=fat"), ["root-large-1"]),
        (("-N2", "--requires=hosts:b1-[0-1]"), ["b1-0", "b1-1"]),
        (("-N2", "--requires=rank:3,7"), ["b1-1", "root-large-1"]),
        (("-N4", "--requires=^large"), ["b1-0", "b1-1", "root-0", "root-1"]),
    ):
        assert sorted(root.lead.flux("run", *words, "flux", "getattr", "hostname").split()) == hosts
    # a burst that does not know the group has another table
    flux.since(68, TAKES_ALL)
    wrong = sides.burst("b0", 1, change=lambda values: values["flux"]["bursting"]["leadBroker"].pop("groups")).start()
    until(lambda: "starts again in 1 s" in wrong.lead.log)
    wrong.end()
    first = sides.burst("b0", 1).start()
    until(lambda: root.up() == "0-1,3-4,6-7")
    root.lead.shut_down()
    assert root.wait() == [0, 0]
    assert [*first.wait(), *second.wait(), group.wait()] == [0] * 4


def answers(side: Side, offers: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what the lead answers to offers of `burst follow`."""
    words = side.lead.entered(f"{MOUNT}/bin/flux", "python", "-c", program.BOOT)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env=side.lead.environment, text=True, **pipes) as process:
        assert process.stdin
        assert process.stdout
        for text in (program.first_line("burst_need"), json.dumps(offers) + "\n"):
            process.stdin.write(text)
            process.stdin.flush()
            yield json.loads(process.stdout.readline())
        for line in process.stdout:
            yield json.loads(line)


def test_the_lead_counts_the_room_on_a_group_before_that_of_bursts(sides: Sides) -> None:
    root = sides.start_root({**VALUES, **QUIET, "groups": GROUPS})
    # the group has one host that is about to start
    sizes = {"root": 2, "root-large": 1}
    jobs = {name: {"metadata": {}, "spec": {"completions": n, "parallelism": n}} for name, n in sizes.items()}
    bursts = [plan.find(root.cluster, name) for name in ("b0", "b1")]
    offers = {
        "number": 1,
        "root": [job.offer(jobs[job.name])._asdict() for job in root_jobs(root.cluster)],
        "bursts": [Offer(burst.first, burst.size, 0, burst.size)._asdict() for burst in bursts],
    }
    for rank in (0, 1):
        submit(root, rank, "sleep", "600")

    def needs(*words: str) -> list[int]:
        root.lead.flux("submit", *words, "sleep", "600")
        waiting = len(root.lead.flux("jobs", "-n", "--filter=pending", "-o", "{id}").split())
        found = answers(root, offers)
        last = next(one for one in found if one.get("waiting") == waiting)
        found.close()
        return [group["need"] for group in last["groups"]]

    assert needs("--cc=1-2", "-n1") == [2, 1, 0, 0]
    assert needs("-n1") == [2, 1, 1, 0]
    assert needs("-n1", "--requires=large") == [2, 1, 1, 0]
    assert needs("-n1", "--requires=hosts:b1-1") == [2, 1, 1, 2]


def test_a_killed_burst_loses_only_its_own_jobs_and_can_join_again(sides: Sides) -> None:
    root = sides.start_root(VALUES)
    side = sides.burst("b0", 2).start()
    until(lambda: root.up() == "0-3")
    theirs, ours = submit(root, 2, "sleep", "600"), submit(root, 1, "sleep", "1")
    both = root.lead.flux("submit", "-N4", "-n4", "true").strip()
    side.end()
    assert status(root, theirs) != 0
    assert status(root, ours) == 0
    until(lambda: root.up() == "0-1")
    side.start()
    until(lambda: root.up() == "0-3")
    assert status(root, both) == 0


def swap(values: Any) -> None:
    values["flux"]["bursting"]["clusters"].reverse()


def enlarge(values: Any) -> None:
    values["flux"]["bursting"]["clusters"][0]["size"] = 3


def shrink_root(values: Any) -> None:
    values["flux"]["bursting"]["leadBroker"]["size"] = 1


def move(values: Any) -> None:
    values["flux"]["bursting"]["leadBroker"]["port"] = 1


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("b0", swap, "b0-0 (rank 4): b1-0 is configured as rank 4: mismatched config?"),
        ("b1", enlarge, "b1-0 (rank 5): b1-1 is configured as rank 5: mismatched config?"),
        ("b0", shrink_root, "b0-0 (rank 1): root-1 is configured as rank 1: mismatched config?"),
    ],
    ids=["order", "size", "root's size"],
)
def test_the_lead_refuses_a_burst_with_another_host_table(
    sides: Sides, flux: Flux, name: str, change: Callable[[Any], None], complaint: str
) -> None:
    flux.since(68, TAKES_ALL)
    root = sides.start_root(VALUES)
    side = sides.burst(name, 1, change=change).start()
    hint = f"starts again in 1 s; the log of its lead, root at {sides.address}:8050, may say why\n"
    until(lambda: hint in side.lead.log)
    assert f"rejecting connection from {complaint}" in root.lead.log
    assert root.up() == "0-1"
    assert hostnames(root, 2) == ["root-0", "root-1"]


@pytest.mark.parametrize("wrong", ["certificate", "address"])
def test_a_burst_names_a_lead_that_does_not_answer(sides: Sides, wrong: str) -> None:
    root = sides.start_root(VALUES)
    if wrong == "certificate":
        cluster = load({"metadata": {"name": "other"}})
        side = sides.burst("b0", 1, certificate=curve.certificate(cluster, curve.random_keypair) or "")
    else:
        side = sides.burst("b0", 1, change=move)
    side.start()
    port = 8050 if wrong == "certificate" else 1
    until(lambda: "no answer" in side.lead.log)
    assert side.lead.log.splitlines()[-1] == (
        f"minicluster: no answer for 60 s from the lead, root at {sides.address}:{port}: "
        "check address, network and certificate"
    )
    assert side.lead.process.poll() is None
    assert root.up() == "0-1"
    assert hostnames(root, 2) == ["root-0", "root-1"]


def test_a_burst_joins_the_lead_that_replaces_another(sides: Sides) -> None:
    root = sides.start_root({**VALUES, **QUIET})
    side = sides.burst("b0", 1).start()
    until(lambda: root.up() == "0-2")
    root.lead.kill()
    root.start([0])
    until(lambda: root.up() == "0-2")
    assert side.lead.process.poll() is None


def listed(hosts: str, *groups: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a root of one node."""
    return {**QUIET, "groups": groups, "flux": {"bursting": {"hostlist": hosts}}}


@pytest.mark.parametrize(
    ("values", "cores", "ranks"),
    [
        (listed("root-0,vm-[0-1]"), "rank[0-2]/core0", "0-2"),
        (
            listed("root-0,root-large-[0-1],vm-[0-1]", *GROUPS),
            "rank[0,3-4]/core0 rank[1-2]/core[0-1]",
            "0,3-4",
        ),
    ],
    ids=["", "groups"],
)
def test_hosts_that_are_not_pods_join_the_root(
    sides: Sides, tmp_path: Path, values: dict[str, Any], cores: str, ranks: str
) -> None:
    root = sides.start_root(values)
    found = plan.find(root.cluster, "vm-[0-1]")
    address = Address(sides.address, 8050)
    member = plan.member(root.cluster, found, plan.values(root.cluster, found, found.size, address))
    environment = {**os.environ, "PATH": f"{sides.flux.path.parent}:{os.environ['PATH']}"}
    decoded = subprocess.run(
        ["flux", "R", "decode", "--short"],
        input=machines.resource_set(member),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert decoded.stdout == f"{cores}\n"
    processes = []
    for name in ("vm-0", "vm-1"):
        folder = tmp_path / name
        folder.mkdir()
        for file in machines.files(member, root.certificate):
            (folder / file.name).write_text(file.text)
            (folder / file.name).chmod(file.mode)
        with (folder / "log").open("wb") as log:
            words = [*UNSHARE, "sh", str(folder / "start.sh"), name]
            processes.append(subprocess.Popen(words, env=environment, cwd="/", stdout=log, stderr=log))
    try:
        until(lambda: root.up() == ranks)
        assert hostnames(root, 3) == ["root-0", "vm-0", "vm-1"]
        root.lead.shut_down()
        assert [process.wait(WAIT_SECONDS) for process in processes] == [0, 0]
        assert root.wait() == [0]
    finally:
        for process in processes:
            process.kill()
