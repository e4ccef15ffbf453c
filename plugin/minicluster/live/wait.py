"""Waiting for the quorum of a MiniCluster, or for its end."""

from collections.abc import Callable
from typing import Literal

from minicluster.errors import StateError
from minicluster.kubectl import Kubernetes
from minicluster.live.find import ended, find_name, teller
from minicluster.live.lead import code_of_work, end_of
from minicluster.live.watch import looks

Until = Literal["quorum", "end"]


def wait(kubernetes: Kubernetes, name: str, until: Until, seconds: float | None, say: Callable[[str], None]) -> int:
    """Return 0 at the quorum; at the end, which may come first, the exit code of the work.

    ``say`` gets each state on the way. Raises StateError after so many seconds, and at an end without an exit code.
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
        tell(job, lead)
    raise AssertionError  # looks ends by an error
