"""A MiniCluster is looked at whenever it may have changed: kubectl watches, nobody asks again and again."""

import selectors
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from minicluster import streams
from minicluster.errors import StateError
from minicluster.kubectl import CommandError, Kubernetes, reason
from minicluster.live.find import find_lead, refusals
from minicluster.live.lead import Lead, labels_of_lead

#: Seconds after which it is looked at anyway; until Kubernetes is asked again; after which it is given up
LOOK, RETRY, PATIENCE = 30.0, 1.0, 300.0


class Look(NamedTuple):
    """A MiniCluster as it is."""

    job: dict[str, Any]  #: empty when there is none
    lead: Lead | None


def looks(kubernetes: Kubernetes, name: str) -> Iterator[Look]:
    """Yield a MiniCluster as it is, and again when its Job or its lead's pod may have changed, and after LOOK.

    An outage of the API server is bridged. Raises StateError at the deadline of ``kubernetes``, and when Kubernetes
    refuses or is away for too long.
    """
    outage = _Outage(kubernetes)
    while True:
        begin = time.monotonic()
        with refusals(), outage.bridged():
            for _ in _watch(kubernetes, name, kubernetes.deadline):
                look = Look(kubernetes.get("job", name), find_lead(kubernetes, name))
                outage.end()
                yield look
        if kubernetes.is_late:
            raise StateError(f"{name} in {kubernetes}: gave up after {kubernetes.limit:g} s")
        # a server that ends each watch at once must not be asked all the time
        time.sleep(max(0.0, RETRY - (time.monotonic() - begin)))


class _Outage:
    """The time for which Kubernetes has not answered."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        """Begin with none."""
        self._kubernetes = kubernetes
        self._since: float | None = None

    def end(self) -> None:
        """Note that Kubernetes answers."""
        self._since = None

    @contextmanager
    def bridged(self) -> Iterator[None]:
        """Forgive what fails because Kubernetes is away. Raises CommandError for a refusal, or after PATIENCE."""
        try:
            yield
        except CommandError as error:
            if self._kubernetes.is_late:
                return  # it was cut off
            if self._since is None:
                self._since = time.monotonic()
                if not error.is_forbidden:
                    streams.say(f"{error.reason}: trying again for {PATIENCE:g} s")
            if error.is_forbidden or time.monotonic() - self._since > PATIENCE:
                raise


def _watch(kubernetes: Kubernetes, name: str, end: float | None) -> Iterator[None]:
    """Yield at each line of the two watches, until one of them ends. Raises CommandError when it failed."""
    kinds = (("job", name), ("pods", f"--selector={labels_of_lead(name)}"))
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for kind, which in kinds:
            words = kubernetes.words("get", kind, which, "--watch", "--output=name")
            process = stack.enter_context(_process(words))
            selector.register(process.stdout or -1, selectors.EVENT_READ, (kind, process))
        is_first = True  # which is due also when there is no time
        while True:
            left = LOOK if is_first or end is None else min(LOOK, end - time.monotonic())
            ready = selector.select(max(0.0, left))
            for key, _ in ready:
                kind, process = key.data
                if not process.stdout.read1(1 << 16):
                    _check(kind, process)
                    yield
                    return
            if not is_first and end is not None and time.monotonic() >= end:
                return
            is_first = False
            yield


@contextmanager
def _process(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(words, stdin=none, stdout=pipe, stderr=pipe) as process:  # noqa: S603 - words, no shell
        try:
            yield process
        finally:
            process.kill()


def _check(kind: str, process: subprocess.Popen[bytes]) -> None:
    """Raise CommandError for a watch that failed; one that the server ended did not, nor one of what is gone."""
    stderr = process.stderr.read().decode(errors="replace") if process.stderr else ""
    if process.wait() and "(NotFound)" not in stderr:
        raise CommandError(f"kubectl get {kind} --watch", reason(stderr) or f"exit code {process.returncode}")
