"""Waiting for the quorum of a MiniCluster, or for its end."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from minicluster.cluster.find import Found
from minicluster.cluster.groups import SUSPENDED
from minicluster.cluster.lead import Lead, code_of_work
from minicluster.cluster.wake import is_asleep, wake
from minicluster.errors import EndError
from minicluster.kube.port import WATCH_SECONDS
from minicluster.live.lookup import Cluster, refusals
from minicluster.live.telling import StateTeller, end_in_words, ended
from minicluster.live.watch import looks
from minicluster.streams import Say

Until = Literal["quorum", "end"]


class End(NamedTuple):
    """The end of a MiniCluster."""

    code: int  #: the exit code of the work
    text: str  #: how it ended, as a sentence


def wait(cluster: Cluster, until: Until, say: Say) -> End | None:
    """Return None at the quorum; at the end, which may come first, how it ended.

    To reach the quorum, a MiniCluster that was suspended because it was idle is woken. ``say`` gets each new state.
    Raises DeadlineError at the deadline, EndError at an end without an exit code, AccessError.
    """
    end, lead = look_for(cluster, is_ready if until == "quorum" else None, say)
    return end and end_of_work(cluster.name, end, lead)


def end_of_work(name: str, end: tuple[str, str], lead: Lead | None) -> End:
    """Return the end of a MiniCluster, of which `end_in_words` tells. Raises EndError without an exit code."""
    code, text = code_of_work(end[0], lead), ended(name, end, lead)
    if code is None:
        raise EndError(text)
    return End(code, text)


def is_ready(lead: Lead) -> bool:
    """Return whether the quorum is there."""
    return lead.is_ready


def look_for(
    cluster: Cluster,
    is_there: Callable[[Lead], bool] | None,
    say: Say,
    check: Callable[[Found], None] | None = None,
    quiet: float = 0,
) -> tuple[tuple[str, str] | None, Lead | None]:
    """Wait until ``is_there`` accepts the lead, or for the end; return the end if that came first, and the lead.

    With ``is_there`` a MiniCluster that was suspended because it was idle is woken. ``check`` gets its objects, with
    the reasons why it is not there yet, and may raise an error. For ``quiet`` seconds no state is told.
    Raises DeadlineError at the deadline, AccessError.
    """
    kubernetes, name = cluster.kubernetes, cluster.name
    tell = StateTeller(kubernetes, name, say, quiet)
    with tell.waiting():
        for job, lead in looks(cluster, say, quiet or WATCH_SECONDS):
            end = end_in_words(kubernetes, name, job, lead)
            if end or (is_there and lead and is_there(lead)):
                return end, lead
            if is_there and is_asleep(job):
                if not quiet:
                    say(f"{name} is suspended, {job['metadata']['annotations'][SUSPENDED]}: waking it")
                with refusals():
                    wake(kubernetes, name)
                continue
            found = tell(job, lead)
            if check:
                check(found)
    raise AssertionError  # looks only ends with an error
