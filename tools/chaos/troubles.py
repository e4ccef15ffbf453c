"""Random kills, evictions, drains, resizes, lost nodes and API outages on a MiniCluster whose jobs keep arriving.

    MINICLUSTER_TEST_KUBECONFIG=$KUBECONFIG python tools/chaos.py --seconds 300 --seed 7

Cluster and images are those of the pods' tests (CONTRIBUTING.md). The cluster keeps Flux's state on a claim, a
folder of the nodes. At the end it prints what was seen, and exits with 1 when a waiting job was lost, a job ran twice
outside of the documented window, the node count is wrong, or something leaked.
"""

import argparse
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/flux"))

from broker_pods import until
from releases import NAME, Release, bind, create_namespace, run, values_of

SIZE, MAX = 3, 5
#: Seconds that a kill of the lead can lose: kvs.checkpoint-period (plugin/minicluster/broker.py), and 2 for the clock
WINDOW = 7.0
#: Seconds until the cluster must be whole and its queue empty again: the Job's back-off of an index is up to 600 s
SETTLE = 900.0
#: Seconds from the command that kills a lead until it is dead for certain
DYING = 5.0
NOTES = "/chaos/runs"
MISSED = (AssertionError, subprocess.TimeoutExpired, json.JSONDecodeError)


class OverError(Exception):
    """The Job ended, and with it the cluster."""


# What is right -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """From when to when, in seconds of the clock."""

    begin: float
    end: float


@dataclass(frozen=True)
class Ended:
    """What Flux says of a job."""

    result: str
    ran: bool


def verdict(
    submitted: Mapping[str, float],
    starts: Mapping[str, Sequence[float]],
    known: Mapping[str, Ended],
    kills: Sequence[Span],
) -> tuple[dict[str, int], list[str]]:
    """Return counts and faults.

    ``submitted`` has the time at which each job was accepted, ``starts`` when it noted that it started, ``known`` what
    Flux says of it at the end, ``kills`` when leads were killed without grace.
    """
    faults: list[str] = []
    counts: Counter[str] = Counter(jobs=len(submitted))
    for name, accepted in submitted.items():
        end, begun = known.get(name), starts.get(name, ())
        if end is None:
            inside = _in_window(accepted, kills)
            counts["lost, in the window" if inside else "lost"] += 1
            if not inside:
                faults.append(f"{name}: Flux does not know it, and it was accepted {_last(accepted, kills)}")
        else:
            counts[end.result.lower()] += 1
            if end.result != "COMPLETED" and not (end.ran or begun):
                faults.append(f"{name}: {end.result} without a start")
        again = [start for start in sorted(begun)[:-1] if not _in_window(start, kills)]
        counts["ran twice, in the window"] += len(begun) > 1 and not again
        counts["ran twice"] += bool(again)
        faults += [f"{name}: started again, first {_last(start, kills)}" for start in again]
    return dict(counts), faults


def _in_window(moment: float, kills: Iterable[Span]) -> bool:
    """Say whether a kill of the lead can have undone what happened then."""
    return any(kill.begin - WINDOW <= moment <= kill.end for kill in kills)


def _last(moment: float, kills: Iterable[Span]) -> str:
    after = [kill.begin - moment for kill in kills if kill.end >= moment]
    return f"{min(after):.1f} s before a kill of the lead" if after else "with no kill of the lead after it"


# What is done ------------------------------------------------------------------------------------------------


@dataclass
class Chaos:
    """A cluster, its jobs, and what was done to it."""

    cluster: Release
    chance: random.Random
    nodes: Sequence[str] = ()  #: that may be drained
    apiserver: int | None = None  #: its process
    fragile: Sequence[str] = ()  #: a node that may be lost, the command that takes it away, the one that brings it back
    submitted: dict[str, float] = field(default_factory=dict)
    kills: list[Span] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    outages: list[float] = field(default_factory=list)  #: seconds without a lead
    drained: set[str] = field(default_factory=set)  #: ranks, by us
    size: int = SIZE
    count: int = 0

    def troubles(self) -> dict[str, tuple[Callable[[], None], int]]:
        """Return what can happen, and how often it does in proportion."""
        every: dict[str, tuple[Callable[[], None], int]] = {
            "worker's broker killed": (lambda: self.cluster.kill_broker(self.worker()), 4),
            "worker's pod deleted": (lambda: self.delete(self.worker()), 3),
            "worker's pod killed": (lambda: self.delete(self.worker(), "--grace-period=0", "--force"), 3),
            "worker evicted": (lambda: self.cluster.evict(self.cluster.pod(self.worker())), 3),
            "lead's broker killed": (lambda: self.kill_lead(lambda: self.cluster.kill_broker(0)), 1),
            "lead's pod killed": (lambda: self.kill_lead(lambda: self.delete(0, "--grace-period=0", "--force")), 1),
            "lead evicted": (lambda: self.cluster.evict(self.cluster.pod(0)), 1),
            "sidecar killed": (lambda: self.kill_container(self.chance.randrange(self.size), "side"), 2),
            "agent killed": (lambda: self.kill_container(0, "minicluster-agent"), 2),
            "resized": (self.resize, 4),
            "rank drained": (self.drain_rank, 2),
        }
        if self.nodes:
            every["node drained"] = (self.drain, 2)
        if self.fragile:
            every["node lost"] = (self.lose_node, 1)
        if self.apiserver:
            every["API server stopped"] = (self.stop_api, 2)
        return every

    def worker(self) -> int:
        """Return the index of a worker that runs."""
        running = [index for index in range(1, MAX) if self.cluster.pod(index)]
        assert running, "no worker runs"
        return self.chance.choice(running)

    def delete(self, index: int, *options: str) -> None:
        """Delete the pod of an index."""
        pod = self.cluster.pod(index)
        assert pod, f"no pod {index}"
        self.cluster.kubectl("delete", "pod", pod, "--wait=false", *options)

    def kill_lead(self, kill: Callable[[], None]) -> None:
        """Note when the lead was killed."""
        begin = time.time()
        try:
            kill()
        finally:
            self.kills.append(Span(begin, time.time() + DYING))

    def kill_container(self, index: int, container: str) -> None:
        """Kill what a container's first process started."""
        script = "kill -9 $(cat /proc/1/task/1/children)"
        self.cluster.kubectl("exec", self.cluster.pod(index), "-c", container, "--", "/bin/sh", "-c", script)

    def resize(self, size: int = 0) -> None:
        """Ask for another size."""
        size = size or self.chance.choice([n for n in range(1, MAX + 1) if n != self.size])
        self.cluster.upgrade("--set", f"size={size}")
        self.size = size

    def drain(self) -> None:
        """Evict the cluster's pods from a node, and let it take new ones a while later."""
        node = self.chance.choice(list(self.nodes))
        run("kubectl", "cordon", node)
        try:
            for pod in self.cluster.pods():
                if pod["spec"].get("nodeName") == node and pod["status"]["phase"] == "Running":
                    self.cluster.evict(pod["metadata"]["name"])
            time.sleep(self.chance.uniform(1, 10))  # what is tested: so long without the node
        finally:
            run("kubectl", "uncordon", node)

    def drain_rank(self) -> None:
        """Drain a rank in Flux, as a person does, and undrain it a while later, at the end at the latest."""
        rank = str(self.chance.randrange(self.size))
        self.flux("resource", "drain", rank, "chaos")
        self.drained.add(rank)
        time.sleep(self.chance.uniform(1, 10))  # what is tested: so long without the rank
        self.undrain(rank)

    def undrain(self, rank: str) -> None:
        """Give a rank back."""
        self.flux("resource", "undrain", "--update", rank)
        self.drained.discard(rank)

    def flux(self, *words: str) -> None:
        """Run a command of Flux. Raises AssertionError when it fails."""
        pod = self.cluster.pod(0)
        assert pod, "no lead"
        self.cluster.kubectl("exec", pod, "--", "/mnt/flux/bin/flux", *words)

    def lose_node(self) -> None:
        """Take a node away with all that is on it, and bring it back once Kubernetes gave its pods up."""
        node, take, bring = self.fragile
        lead = self.cluster.pod(0)
        on_it = {p["metadata"]["name"] for p in self.cluster.pods() if p["spec"].get("nodeName") == node}
        begin = time.time()
        try:
            command(take)
            self.wait(lambda: on_it.isdisjoint(self.running()))
        finally:
            command(bring)
        if lead in on_it:
            self.kills.append(Span(begin, time.time()))
            self.wait_for_lead(lead)

    def running(self) -> set[str]:
        """Return the names of the pods that run, as far as Kubernetes knows."""
        return {p["metadata"]["name"] for p in self.cluster.pods() if p["status"]["phase"] == "Running"}

    def stop_api(self) -> None:
        """Keep the API server from answering for a while."""
        assert self.apiserver is not None
        os.kill(self.apiserver, signal.SIGSTOP)
        try:
            time.sleep(self.chance.uniform(5, 30))  # what is tested: so long an outage
        finally:
            os.kill(self.apiserver, signal.SIGCONT)

    def submit(self) -> None:
        """Submit a job, which notes when it starts; it counts once Flux took it."""
        self.count += 1
        name = f"chaos-{self.count}"
        nodes = self.chance.choice((1, 1, 1, 2, 3))
        script = f'[ "$FLUX_TASK_RANK" != 0 ] || echo {name} $(date +%s.%N) >>{NOTES}; sleep {self.length():.1f}'
        words = (f"--job-name={name}", f"-N{nodes}", f"-n{nodes}", "--exclusive", "sh", "-c", script)
        assert self.cluster.flux(0, "submit", *words), "not accepted"
        self.submitted[name] = time.time()

    def length(self) -> float:
        """Return how many seconds a job takes."""
        return self.chance.uniform(0.2, 6)

    def attempt(self, name: str, do: Callable[[], None]) -> bool:
        """Do what may fail because of what was done before; say whether it could be done."""
        try:
            do()
        except MISSED as error:
            self.missed[name] += 1
            say(f"missed: {name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
            return False
        self.done[name] += 1
        return True

    def go(self, seconds: float) -> None:
        """Do random things for so long."""
        end = time.monotonic() + seconds
        names = {name: weight for name, (_, weight) in self.troubles().items()}
        while time.monotonic() < end:
            for _ in range(self.chance.randint(0, 4)):
                self.attempt("submitted", self.submit)
            [name] = self.chance.choices(list(names), list(names.values()))
            say(name)
            lead = self.cluster.pod(0)
            if self.attempt(name, self.troubles()[name][0]) and name.startswith("lead"):
                self.wait_for_lead(lead)
            time.sleep(self.chance.uniform(0, 5))  # some troubles meet, some don't

    def wait_for_lead(self, old: str) -> None:
        """Note how long the cluster was without a lead: meanwhile nothing but the Job's back-off would be tested."""
        begin = time.monotonic()
        self.wait(lambda: self.cluster.pod(0) not in ("", old) and self.answers())
        self.outages.append(time.monotonic() - begin)
        say(f"the lead is back after {self.outages[-1]:.1f} s")

    def answers(self) -> bool:
        """Say whether the lead takes jobs."""
        return bool(self.cluster.flux(0, "queue", "status"))

    def settle(self) -> float:
        """Ask for the first size again; return after how many seconds the cluster is whole and idle."""
        begin = time.monotonic()
        self.wait(lambda: self.tried(lambda: self.resize(SIZE)))
        for rank in list(self.drained):
            self.wait(lambda rank=rank: self.tried(lambda: self.undrain(rank)))  # type: ignore[misc]
        self.wait(lambda: self.tried(self.whole))
        return time.monotonic() - begin

    def wait(self, found: Callable[[], bool]) -> None:
        """Wait for something. Raises OverError when the Job ends, and when it takes too long."""
        end = time.monotonic() + SETTLE
        while not found():
            ends = [c for c in self.cluster.json("job", NAME)["status"].get("conditions", []) if c["status"] == "True"]
            if ends:
                raise OverError(f"the Job is {ends[-1]['type']}: {ends[-1].get('message')}")
            if time.monotonic() > end:
                raise OverError(
                    f"not within {SETTLE:.0f} s; pods: {[p['metadata']['name'] for p in self.cluster.pods()]}"
                )
            time.sleep(0.5)

    def whole(self) -> None:
        """Raise AssertionError while something is missing, or has work."""
        assert self.cluster.up() == f"0-{SIZE - 1}"
        assert self.cluster.flux(0, "jobs", "-n", "-o", "{id}") == ""
        assert self.cluster.flux(0, "resource", "status", "-n", "-s", "drain", "-o", "{ranks}").strip() == ""
        assert len(self.cluster.uids()) == SIZE

    @staticmethod
    def tried(do: Callable[[], object]) -> bool:
        """Say whether something could be done."""
        try:
            do()
        except MISSED:
            return False
        return True

    def known(self) -> dict[str, Ended]:
        """Return the jobs that Flux knows of."""
        lines = self.cluster.flux(0, "jobs", "-a", "-n", "--count=0", "-o", "{name} {result} {t_run}").splitlines()
        rows = [line.split() for line in lines]
        return {name: Ended(result, float(run or 0) > 0) for name, result, run in rows}

    def starts(self) -> dict[str, list[float]]:
        """Return when jobs started, as they noted it."""
        found: dict[str, list[float]] = {}
        for name, moment in (line.split() for line in self.cluster.exec(0, "cat", NOTES).splitlines()):
            found.setdefault(name, []).append(float(moment))
        return found


def footprint(cluster: Release) -> list[dict[str, int]]:
    """Return what each pod holds: files of the cluster, open files and memory (KiB) of its broker, processes."""
    script = (
        "p=$(/mnt/flux/bin/flux getattr broker.pid); find /mnt/flux -xdev -type f | wc -l; ls /proc/$p/fd | wc -l;"
        " sed -n 's/^VmRSS:[^0-9]*//p' /proc/$p/status; ls -d /proc/[0-9]* | wc -l"
    )
    keys = ("files", "open files", "memory", "processes")
    shown = [cluster.exec(index, "/bin/sh", "-c", script) for index in range(SIZE)]
    return [dict(zip(keys, (int(line.split()[0]) for line in text.splitlines()), strict=True)) for text in shown]


def leaks(before: Sequence[Mapping[str, int]], after: Sequence[Mapping[str, int]]) -> Iterator[str]:
    """Yield what grew beyond what a queue of some hundred jobs needs."""
    allowed = {"files": 20, "open files": 20, "memory": 65536, "processes": 10}
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        for key, more in allowed.items():
            if new[key] > old[key] + more:
                yield f"pod {index}: {key} grew from {old[key]} to {new[key]}"


def command(line: str) -> None:
    """Run a command line of the caller's. Raises AssertionError when it fails."""
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr


def say(text: str) -> None:
    """Write a line of the log."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def taints(node: str) -> list[Any]:
    """Return tolerations of a node's taints: it may be there for this alone."""
    spec = json.loads(run("kubectl", "get", "node", node, "-o", "json").stdout)["spec"]
    return [{"key": t["key"], "operator": "Exists", "effect": t["effect"]} for t in spec.get("taints", ())]


@contextmanager
def installed(arguments: argparse.Namespace, folder: Path) -> Iterator[Release]:
    """Install the cluster, and remove it."""
    volume = namespace = f"minicluster-chaos-{secrets.token_hex(4)}"
    runner = {"runFlux": True, "cores": 1, "volumes": {"chaos": {"claimName": "state", "path": "/chaos"}}}
    values = values_of(VALUES, runner, "image", arguments.scheduler)
    values["pod"] = {
        "tolerations": [taint for node in [*arguments.drain, *arguments.lose[:1]] for taint in taints(node)]
    }
    create_namespace(namespace)
    cluster = Release(namespace, "helm", values, folder)
    try:
        bind(cluster, "state", volume, arguments.folder or folder / "state")
        yield cluster.install()
    finally:
        run("helm", "uninstall", NAME, "-n", namespace, check=False)
        until(lambda: not cluster.pods(), 120)
        run("kubectl", "delete", "namespace", namespace, "--wait=false")
        run("kubectl", "delete", "persistentvolume", volume, "--wait=false")


VALUES: Mapping[str, Any] = {
    "size": SIZE,
    "maxSize": MAX,
    "containers": [{"name": "side", "command": "sleep infinity"}],
    "backoffLimit": 10000,
    "metrics": {"enabled": True},
    "state": {"claimName": "state"},
    "logging": {"quiet": True},
}


def options() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800, help="how long (1800)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="which troubles (any)")
    parser.add_argument("--scheduler", choices=("Fluxion", "sched-simple"), default="Fluxion")
    parser.add_argument(
        "--drain", action="append", metavar="NODE", default=[], help="a node that may be drained; more than once"
    )
    parser.add_argument(
        "--lose",
        nargs=3,
        default=[],
        metavar=("NODE", "TAKE", "BRING"),
        help="a node that may be lost, the command line that takes it away for good, and the one that brings it back",
    )
    parser.add_argument("--folder", type=Path, help="folder for the state, the same on all nodes (a temporary one)")
    parser.add_argument("--apiserver", type=int, metavar="PID", help="API server to stop for 5-30 s: a local cluster's")
    return parser.parse_args()


def main() -> int:
    """Run; return the exit code."""
    arguments = options()
    say(f"--scheduler {arguments.scheduler} --seed {arguments.seed} --seconds {arguments.seconds:.0f}")
    with tempfile.TemporaryDirectory() as folder, installed(arguments, Path(folder)) as cluster:
        cluster.wait_for(f"0-{SIZE - 1}")
        before = footprint(cluster)
        chaos = Chaos(cluster, random.Random(arguments.seed), arguments.drain, arguments.apiserver, arguments.lose)
        settled, counts, after = 0.0, {"jobs": 0}, before
        try:
            chaos.go(arguments.seconds)
            settled = chaos.settle()
            counts, faults = verdict(chaos.submitted, chaos.starts(), chaos.known(), chaos.kills)
            after = footprint(cluster)
            faults += leaks(before, after)
        except OverError as error:
            faults = [str(error)]
        seen = {
            "seconds": arguments.seconds,
            "troubles": dict(chaos.done),
            "missed": dict(chaos.missed),
            "jobs": counts,
            "seconds without a lead": [round(seconds, 1) for seconds in chaos.outages],
            "whole and idle after": round(settled, 1),
            "before": before,
            "after": after,
            "faults": faults,
        }
        print(json.dumps(seen, indent=2))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
