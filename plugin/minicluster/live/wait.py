"""Waiting for the quorum of a MiniCluster, or for its end."""

from collections.abc import Callable
from typing import Literal

from minicluster.errors import StateError
from minicluster.kubectl import Kubernetes
from minicluster.live.find import ended, find_name, refusals, teller
from minicluster.live.lead import code_of_work, end_of
from minicluster.live.wake import ByKubectl, is_asleep, wake
from minicluster.live.watch import looks
from minicluster.status.objects import SUSPENDED

Until = Literal["quorum", "end"]


def wait(kubernetes: Kubernetes, name: str, until: Until, seconds: float | None, say: Callable[[str], None]) -> int:
    """Return 0 at the quorum; at the end, which may come first, the exit code of the work.

    One that was suspended because it was idle is woken for the quorum. ``say`` gets each state on the way.
    Raises StateError after so many seconds, and at an end without an exit code.
    """
    name = find_name(kubernetes, name)
    tell = teller(kubernetes, name, say)
    for job, lead in looks(kubernetes, name, seconds):
        end = end_of(name, job)
        if end:
            code = code_of_work(end[0], lead)
            if code is None:
                raise StateError(ended(name, end, lead))
            say(ended(name, end, lead))
            return code
        if until == "quorum" and lead and lead.is_ready:
            return 0
        if until == "quorum" and is_asleep(job):
            why = job["metadata"]["annotations"][SUSPENDED]
            say(f"{name} is suspended, {why}: waking it")
            with refusals():
                wake(ByKubectl(kubernetes, name))
        else:
            tell(job, lead)
    raise AssertionError  # looks ends by an error
