"""Sidecars, services and the agent: when they start, and how they end."""

from contextlib import suppress
from pathlib import Path

import pytest
from pods import Make, Pod, Process, until

QUIET = {"logging": {"quiet": True}}
#: Each run of the command leaves a line
RUNS = "echo run >>$MINICLUSTER_HOME/runs"


def container(make: Make, name: str = "side", index: int = 0, flux: object = None, **fields: object) -> Pod:
    """Make a pod with a sidecar."""
    values = {**QUIET, "containers": [{"name": name, "image": "i", **fields}]}
    return make({**values, **({"flux": flux} if flux else {})}, {"runFlux": True}, index=index)


def with_broker(pod: Pod) -> Pod:
    """Let the pod's runner run, up to its socket."""
    pod.start()
    until((pod.run_folder / "flux/local").exists)
    return pod


def runs(pod: Pod) -> int:
    """Return how often the command ran."""
    path = pod.home / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_sidecar_whose_command_succeeds_stays_and_runs_it_once(make: Make) -> None:
    pod = with_broker(container(make, command=RUNS))
    side = pod.start("container.sh", "side", "sidecar")
    until(lambda: runs(pod) == 1)
    asleep(side, pod)
    assert side.stop() == 0
    assert (runs(pod), side.log) == (1, "")


def asleep(process: Process, pod: Pod) -> None:
    """Wait until a container only sleeps. If it ended, Kubernetes would start it again."""
    commands = f"cat /proc/{process.popen.pid}/task/*/children"

    def sleeps() -> bool:
        children = pod.exec(commands).out.split()
        return any("sleep" in pod.exec(f"cat /proc/{child}/cmdline").out for child in children)

    until(lambda: not process.runs or sleeps())
    assert process.runs, process.log


@pytest.mark.parametrize("kind", ["sidecar", "service"])
def test_a_command_that_fails_is_logged_and_ends_the_container(make: Make, kind: str) -> None:
    pod = with_broker(container(make, command="exit 7"))
    assert pod.run("container.sh", "side", kind) == (
        7,
        "minicluster: side: the command failed with exit code 7\n",
    )


def test_a_service_ends_with_its_command(make: Make) -> None:
    pod = container(make, command="echo ${FLUX_URI-none}")
    assert pod.run("container.sh", "side", "service") == (0, "none\n")


@pytest.mark.parametrize("kind", ["sidecar", "service"])
def test_a_container_that_is_told_to_stop_exits_0(make: Make, kind: str) -> None:
    pod = with_broker(container(make, command="trap 'exit 9' TERM; : >$MINICLUSTER_HOME/runs; sleep 600 & wait $!"))
    side = pod.start("container.sh", "side", kind)
    until((pod.home / "runs").exists)
    assert side.stop() == 0


def test_the_snippets_of_a_sidecar_run_in_order(make: Make) -> None:
    texts = {"init": "A=init", "servicePre": "A=$A,pre; export A", "post": "echo post $A"}
    pod = with_broker(container(make, command="echo work $A; exit 5", commands=texts))
    # logging.quiet hides the output of the last one
    (pod.home / "minicluster/side.post.sh").chmod(0o755)
    code, log = pod.run("container.sh", "side", "sidecar")
    assert code == 5
    assert log.splitlines() == ["work init,pre", "minicluster: side: the command failed with exit code 5"]


def test_a_sidecar_runs_its_script_without_a_command(make: Make) -> None:
    pod = with_broker(container(make, commands={"script": "echo script; exit 2"}))
    assert pod.run("container.sh", "side", "sidecar")[1].splitlines()[0] == "script"


# The broker --------------------------------------------------------------------------------------------------


def test_a_sidecar_waits_for_the_socket_of_its_broker(make: Make) -> None:
    pod = container(make, command=f"{RUNS}; flux resource list")
    side = pod.start("container.sh", "side", "sidecar")
    asleep(side, pod)
    assert runs(pod) == 0
    with_broker(pod)
    until(lambda: pod.calls("resource", "list"))
    [call] = pod.calls("resource", "list")
    assert call.env["FLUX_URI"] == f"local://{pod.run_folder}/flux/local"


def test_a_sidecar_waits_for_the_modules_of_its_broker(make: Make) -> None:
    pod = container(make, command=RUNS)
    pod.play("python -c", f": >{pod.root}/asked; until [ -e {pod.root}/there ]; do sleep 0.05; done")
    with_broker(pod)
    side = pod.start("container.sh", "side", "sidecar")
    until(lambda: (pod.root / "asked").exists() or runs(pod))
    assert runs(pod) == 0
    assert side.runs
    (pod.root / "there").touch()
    until(lambda: runs(pod) == 1)


def test_a_sidecar_waits_as_long_as_its_broker_waits_for_its_quorum(make: Make) -> None:
    pod = with_broker(container(make, command=RUNS))
    asked = pod.root / "asked"
    # each question takes most of the time that a broker has
    pod.command("date", f"#!/bin/sh\necho $(($(wc -l <{asked}) * 500))\n")
    asked.touch()
    pod.play("python -c", f'[ $# -gt 2 ] || exit 0; echo >>{asked}; [ "$(wc -l <{asked})" -ge 5 ] || exit 76')
    side = pod.start("container.sh", "side", "sidecar")
    until(lambda: runs(pod) == 1)
    assert (side.stop(), side.log) == (0, "")


def test_a_sidecar_does_not_take_a_broker_that_ends_for_one_that_is_there(make: Make) -> None:
    pod = with_broker(container(make, command=RUNS))
    pod.edit("container.sh", "WAIT_SECONDS=600 ", "WAIT_SECONDS=1 ")
    pod.play("python -c", "[ $# -gt 2 ] || exit 0; exit 1")
    said = "minicluster: side: no broker within 1 s\n"
    assert (pod.run("container.sh", "side", "sidecar"), runs(pod)) == ((1, said), 0)


def test_a_sidecar_whose_image_can_not_run_flux_waits_for_the_socket_only(make: Make) -> None:
    pod = with_broker(container(make, command=RUNS))
    pod.play("--version", "exit 127")
    pod.play("python -c", "sleep 600")
    pod.start("container.sh", "side", "sidecar")
    until(lambda: runs(pod) == 1)


@pytest.mark.parametrize("flux", [{"noWaitSocket": True}, {"disableSocket": True}], ids=str)
def test_a_sidecar_does_not_wait_for_a_socket_that_the_values_turn_off(make: Make, flux: dict[str, bool]) -> None:
    pod = container(make, flux=flux, command=RUNS)
    pod.start("container.sh", "side", "sidecar")
    until(lambda: runs(pod) == 1)


def test_a_sidecar_that_waits_for_its_broker_can_be_told_to_stop(make: Make) -> None:
    pod = container(make, command=RUNS)
    side = pod.start("container.sh", "side", "sidecar")
    asleep(side, pod)
    assert side.stop() == 0
    assert runs(pod) == 0


@pytest.mark.parametrize("kind", ["sidecar", "service"])
def test_the_script_of_a_sidecar_may_name_its_interpreter(make: Make, kind: str) -> None:
    script = "#!/usr/bin/env -S sed -n 2p\nthis line\nand no other\n"
    pod = container(make, flux={"noWaitSocket": True}, commands={"script": script})
    side = pod.start("container.sh", "side", kind)
    until(lambda: side.log)
    assert side.log == "this line\n"


@pytest.mark.parametrize("home", ["/nonexistent", "/"])
def test_a_sidecar_has_a_writable_home_and_tmpdir_of_its_own(make: Make, home: str) -> None:
    """Also with a read-only root and any user. They are not those of the runner."""
    pod = container(make, flux={"noWaitSocket": True}, command='cd "$HOME" && : >here; cd "$TMPDIR" && : >there')
    side = pod.start("container.sh", "side", "sidecar", HOME=home, TMPDIR="/nonexistent")
    asleep(side, pod)
    assert side.log == ""
    assert [str(file.relative_to(pod.home)) for file in sorted(pod.home.glob(".own-side/*/*"))] == [
        ".own-side/home/here",
        ".own-side/tmp/there",
    ]
    assert not pod.state.exists()


# On the lead only --------------------------------------------------------------------------------------------


def test_a_container_on_the_lead_only_runs_there_as_a_sidecar(make: Make) -> None:
    pod = with_broker(container(make, command=f"{RUNS}; flux resource list"))
    side = pod.start("container.sh", "side", "lead")
    until(lambda: pod.calls("resource", "list"))
    asleep(side, pod)
    assert runs(pod) == 1
    assert side.stop() == 0


def test_a_container_on_the_lead_only_ends_when_its_command_fails(make: Make) -> None:
    pod = with_broker(container(make, command="exit 7"))
    assert pod.run("container.sh", "side", "lead") == (7, "minicluster: side: the command failed with exit code 7\n")


def test_a_container_on_the_lead_only_does_nothing_but_wait_on_a_worker(make: Make) -> None:
    """It neither waits for the broker nor runs a script of the user, and ends at once when told to stop."""
    texts = {"init": RUNS, "servicePre": RUNS, "post": RUNS}
    pod = container(make, index=1, command=RUNS, commands=texts)
    side = pod.start("container.sh", "side", "lead")
    waits(side, ".own-side")
    assert not (pod.home / ".own-side").is_dir()
    assert side.stop() == 0
    assert (runs(pod), side.log, pod.calls()) == (0, "", [])


# The agent ---------------------------------------------------------------------------------------------------


def test_the_agent_runs_beside_the_lead(make: Make) -> None:
    pod = with_broker(make(QUIET))
    pod.play("python agent.py", f": >{pod.root}/agent; sleep 600")
    agent = pod.start("container.sh", "minicluster-agent", "agent")
    until((pod.root / "agent").exists)
    [call] = pod.calls("python", "agent.py")
    assert call.words[2:] == [f"{pod.home}/minicluster/agent.json"]
    assert call.env["FLUX_URI"] == f"local://{pod.run_folder}/flux/local"
    assert agent.stop() == 0


def test_the_agent_does_nothing_but_wait_on_a_worker(make: Make) -> None:
    """It can start again in the same pod."""
    pod = make(QUIET, index=1)
    for _ in range(2):
        agent = pod.start("container.sh", "minicluster-agent", "agent")
        waits(agent, "minicluster-agent")
        assert (agent.stop(), agent.log) == (0, "")
    assert pod.calls() == []


def waits(process: Process, container: str) -> None:
    """Wait until the shell reads its FIFO: it has started no process, and uses no CPU."""
    files = Path(f"/proc/{process.popen.pid}")

    def reads() -> bool:
        opened = []
        for file in (files / "fd").iterdir():
            with suppress(FileNotFoundError):  # closed since
                opened.append(str(file.readlink()))
        return "S (sleeping)" in (files / "status").read_text() and any(container in name for name in opened)

    until(reads)
    used = (files / "stat").read_text().split()[13:15]
    assert (files / f"task/{process.popen.pid}/children").read_text() == ""
    assert process.runs
    assert (files / "stat").read_text().split()[13:15] == used


def test_an_agent_that_fails_ends_its_container(make: Make) -> None:
    pod = with_broker(make(QUIET))
    pod.play("python agent.py", "exit 1")
    assert pod.run("container.sh", "minicluster-agent", "agent")[0] == 1
