"""The troubles of a cluster, at random, while jobs arrive."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tools.chaos.jobs import SHARED, Jobs
from tools.chaos.verdict import Span
from tools.chaos.watched import MISSED, Watched, say
from tools.clients import output, until
from tools.releases import MOUNT

FIRST_NODES, MOST_NODES = 3, 5
#: Seconds from the command that kills a lead until it is dead for certain
DYING_SECONDS = 5.0
#: Seconds until the lead knows of a failed check, and until a sleeping cluster has no pods.
CHECK_SECONDS, SLEEP_SECONDS = 60.0, 120.0
UNFIT = f"{SHARED}/unfit"  #: has the index of the node whose check fails
NODE_CHECK = f'[ "$JOB_COMPLETION_INDEX" != "$(cat {UNFIT} 2>&1)" ] || {{ echo unfit; exit 1; }}'


@dataclass
class Chaos(Watched):
    """A cluster, its jobs, and the troubles that it was given."""

    jobs: Jobs
    chance: random.Random
    nodes: Sequence[str] = ()  #: Kubernetes nodes that may be drained
    apiserver: int | None = None  #: its process id
    fragile: Sequence[str] = ()  #: a node that may be lost, the command that takes it away, the one that brings it back
    kills: list[Span] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    drained: set[str] = field(default_factory=set)  #: ranks that `drain_rank` has drained
    size: int = FIRST_NODES

    def troubles(self) -> dict[str, tuple[Callable[[], None], int]]:
        """Return the troubles by name, each with its relative frequency."""
        every: dict[str, tuple[Callable[[], None], int]] = {
            "worker's broker killed": (lambda: self.release.kill_broker(self.worker()), 4),
            "worker's container killed": (lambda: self.release.kill_container(self.worker()), 3),
            "worker's pod deleted": (lambda: self.delete(self.worker()), 3),
            "worker's pod killed": (lambda: self.delete(self.worker(), "--grace-period=0", "--force"), 3),
            "worker evicted": (lambda: self.release.evict(self.release.pod(self.worker())), 3),
            "lead's broker killed": (lambda: self.kill_lead(lambda: self.release.kill_broker(0)), 1),
            "lead's container killed": (lambda: self.kill_lead(lambda: self.release.kill_container(0)), 1),
            "lead's pod killed": (lambda: self.kill_lead(lambda: self.delete(0, "--grace-period=0", "--force")), 1),
            "lead evicted": (lambda: self.release.evict(self.release.pod(0)), 1),
            "sidecar killed": (lambda: self.kill_in(self.chance.randrange(self.size), "side"), 2),
            "agent killed": (lambda: self.kill_in(0, "minicluster-agent"), 2),
            "resized": (self.resize, 4),
            "rank drained": (self.drain_rank, 2),
            "greedy job": (self.feed, 3),
            "check failed": (self.fail_check, 2),
            "slept": (self.sleep, 1),
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
        running = [index for index in range(1, MOST_NODES) if self.release.pod(index)]
        assert running, "no worker runs"
        return self.chance.choice(running)

    def delete(self, index: int, *options: str) -> None:
        """Delete the pod of an index."""
        pod = self.release.pod(index)
        assert pod, f"no pod {index}"
        self.release.kubectl("delete", "pod", pod, "--wait=false", *options)

    def kill_lead(self, kill: Callable[[], None]) -> None:
        """Kill the lead, and note when."""
        begin = time.time()
        try:
            kill()
        finally:
            self.kills.append(Span(begin, time.time() + DYING_SECONDS))

    def kill_in(self, index: int, container: str) -> None:
        """Kill the children of a container's first process."""
        script = "kill -9 $(cat /proc/1/task/1/children)"
        self.release.kubectl("exec", self.release.pod(index), "-c", container, "--", "/bin/sh", "-c", script)

    def resize(self, size: int = 0) -> None:
        """Ask for another size."""
        size = size or self.chance.choice([n for n in range(1, MOST_NODES + 1) if n != self.size])
        self.release.upgrade("--set", f"size={size}")
        self.size = size

    def feed(self) -> None:
        """Run a greedy job, which alone must end."""
        ended = self.jobs.eat()
        assert ended.startswith("memory: "), f"ended by {ended}"

    def fail_check(self) -> None:
        """Let a worker that comes back fail its check, until the lead knows of it."""
        index = self.worker()
        assert self.release.run_in(self.release.pod(index), "sh", "-c", f"echo {index} >{UNFIT}").code == 0
        try:
            self.release.kill_broker(index)
            drained = ("resource", "status", "-n", "-s", "drain", "-o", "{reason}")
            until(lambda: "check failed: unfit" in self.release.flux(0, *drained), CHECK_SECONDS)
        finally:
            self.pass_checks()

    def pass_checks(self) -> None:
        """Let all checks succeed."""
        done = [self.release.run_in(pod, "rm", "-f", UNFIT).code for pod in self.running()]
        assert 0 in done, "no pod could remove the mark"

    def sleep(self) -> None:
        """Suspend the Job until its pods are gone, and wake it."""
        lead = self.release.broker(0)
        size = ("--set", f"size={self.size}")
        self.release.upgrade(*size, "--set", "suspend=true")
        try:
            until(lambda: not self.running(), SLEEP_SECONDS)
        finally:
            self.release.upgrade(*size)
        self.wait_for_lead(lead)

    def drain(self) -> None:
        """Evict the cluster's pods from a node, and let the node take new pods a while later."""
        node = self.chance.choice(list(self.nodes))
        self.release.cluster.kubectl("cordon", node)
        try:
            for pod in self.release.pods():
                if pod["spec"].get("nodeName") == node and pod["status"]["phase"] == "Running":
                    self.release.evict(pod["metadata"]["name"])
            time.sleep(self.chance.uniform(1, 10))  # what is tested: a time without the node
        finally:
            self.release.cluster.kubectl("uncordon", node)

    def drain_rank(self) -> None:
        """Drain a rank in Flux, as a person does, and undrain it a while later; `settle` undrains it if that fails."""
        rank = str(self.chance.randrange(self.size))
        self.flux("resource", "drain", rank, "chaos")
        self.drained.add(rank)
        time.sleep(self.chance.uniform(1, 10))  # what is tested: a time without the rank
        self.undrain(rank)

    def undrain(self, rank: str) -> None:
        """Undrain a rank."""
        self.flux("resource", "undrain", "--update", rank)
        self.drained.discard(rank)

    def flux(self, *words: str) -> None:
        """Run a command of Flux. Raises ProcessError when it fails."""
        pod = self.release.pod(0)
        assert pod, "no lead"
        self.release.kubectl("exec", pod, "--", f"{MOUNT}/bin/flux", *words)

    def lose_node(self) -> None:
        """Take a node away with its pods, and bring it back once Kubernetes has given up these pods."""
        node, take, bring = self.fragile
        lead = self.release.broker(0)
        on_it = {p["metadata"]["name"] for p in self.release.pods() if p["spec"].get("nodeName") == node}
        begin = time.time()
        try:
            output("/bin/sh", "-c", take, seconds=180)
            self.wait(lambda: on_it.isdisjoint(self.running()))
        finally:
            output("/bin/sh", "-c", bring, seconds=180)
        if lead.split(" ")[0] in on_it:
            self.kills.append(Span(begin, time.time()))
            self.wait_for_lead(lead)

    def stop_api(self) -> None:
        """Keep the API server from answering for a while."""
        assert self.apiserver is not None
        os.kill(self.apiserver, signal.SIGSTOP)
        try:
            time.sleep(self.chance.uniform(5, 30))  # what is tested: an outage of this length
        finally:
            os.kill(self.apiserver, signal.SIGCONT)

    def attempt(self, name: str, do: Callable[[], None]) -> bool:
        """Do something that an earlier trouble may prevent; return whether it succeeded."""
        try:
            do()
        except MISSED as error:
            self.missed[name] += 1
            say(f"missed: {name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
            return False
        self.done[name] += 1
        return True

    def for_seconds(self, seconds: float) -> Iterator[str]:
        """Yield random troubles until the time is over."""
        end = time.monotonic() + seconds
        names = {name: weight for name, (_, weight) in self.troubles().items()}
        while time.monotonic() < end:
            yield self.chance.choices(list(names), list(names.values()))[0]

    def by_count(self, resizes: int, kills: int) -> Iterator[str]:
        """Yield so many resizes and kills of brokers, every second one the lead's, in random order."""
        brokers = ["lead's broker killed", "worker's broker killed"]
        names = ["resized"] * resizes + [brokers[number % 2] for number in range(kills)]
        yield from self.chance.sample(names, len(names))

    def go(self, names: Iterable[str], pause: float) -> None:
        """Do things, with a random pause of at most ``pause`` seconds after each."""
        for name in names:
            for _ in range(self.chance.randint(0, 4)):
                self.attempt("submitted", self.jobs.submit)
            say(name)
            lead = self.release.broker(0)
            if self.attempt(name, self.troubles()[name][0]) and name.startswith("lead"):
                self.wait_for_lead(lead)
            time.sleep(self.chance.uniform(0, pause))  # so that some troubles overlap

    def settle(self) -> float:
        """Ask for the first size again; return after how many seconds the cluster is whole and idle."""
        begin = time.monotonic()
        self.wait(lambda: self.tried(lambda: self.resize(FIRST_NODES)))
        self.wait(lambda: self.tried(self.pass_checks))
        for rank in list(self.drained):
            self.wait(lambda rank=rank: self.tried(lambda: self.undrain(rank)))  # type: ignore[misc]
        self.wait(lambda: self.tried(self.whole))
        return time.monotonic() - begin

    def whole(self) -> None:
        """Raise AssertionError while a node is missing or drained, or there are jobs."""
        assert self.release.up() == f"0-{FIRST_NODES - 1}"
        assert self.release.flux(0, "jobs", "-n", "-o", "{id}") == ""
        assert self.release.flux(0, "resource", "status", "-n", "-s", "drain", "-o", "{ranks}").strip() == ""
        assert len(self.release.uids()) == FIRST_NODES
