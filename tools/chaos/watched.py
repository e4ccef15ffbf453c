"""A cluster under troubles, and how long it may take to recover."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tools.clients import ClusterError
from tools.releases import FluxRelease

#: Seconds until the cluster must be whole and its queue empty again: the Job's back-off of an index is up to 600 s
SETTLE_SECONDS = 900.0
#: The errors of commands whose target was lost in an earlier trouble.
MISSED = (AssertionError, ClusterError, json.JSONDecodeError)


class OverError(Exception):
    """The Job ended, and with it the cluster."""


@dataclass
class Watched:
    """A cluster that is asked until it is as it should be."""

    release: FluxRelease
    outages: list[float] = field(default_factory=list, kw_only=True)  #: seconds without a lead

    def wait_for_lead(self, old: str) -> None:
        """Wait for the next lead, and note how long there was none. More troubles would only test the back-off."""
        begin = time.monotonic()
        self.wait(lambda: self.release.broker(0) not in ("", old) and self.answers())
        self.outages.append(time.monotonic() - begin)
        say(f"the lead is back after {self.outages[-1]:.1f} s")

    def answers(self) -> bool:
        """Return whether the lead takes jobs."""
        return bool(self.release.flux(0, "queue", "status"))

    def wait(self, is_met: Callable[[], bool]) -> None:
        """Wait until found() is true. Raises OverError when the Job ends, and when it takes too long."""
        end = time.monotonic() + SETTLE_SECONDS
        while not is_met():
            for kind, condition in self.release.conditions().items():
                if kind != "Suspended":
                    raise OverError(f"the Job is {kind}: {condition.get('message')}")
            if time.monotonic() > end:
                raise OverError(
                    f"not within {SETTLE_SECONDS:.0f} s; pods: {[p['metadata']['name'] for p in self.release.pods()]}"
                )
            time.sleep(0.5)

    def running(self) -> set[str]:
        """Return the names of the pods that Kubernetes calls Running."""
        return {p["metadata"]["name"] for p in self.release.pods() if p["status"]["phase"] == "Running"}

    @staticmethod
    def tried(do: Callable[[], object]) -> bool:
        """Do something; return whether it succeeded."""
        try:
            do()
        except MISSED:
            return False
        return True


def say(text: str) -> None:
    """Print a line of the log."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
