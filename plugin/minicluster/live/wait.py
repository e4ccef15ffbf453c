"""Waiting for the quorum of a MiniCluster, or for its end."""

from collections.abc import Callable
from typing import Literal

from minicluster.cluster.find import Found
from minicluster.cluster.groups import SUSPENDED
from minicluster.cluster.lead import Lead, code_of_work
from minicluster.cluster.wake import ByKubectl, is_asleep, wake
from minicluster.errors import StateError
from minicluster.live.kubectl_evidence import KubectlEvidence
from minicluster.live.lookup import Cluster, refusals
from minicluster.live.telling import StateTeller, end_in_words, ended
from minicluster.live.watch import looks

Until = Literal["quorum", "end"]
Say = Callable[[str], None]


def wait(cluster: Cluster, until: Until, say: Say) -> int:
    """Return 0 at the quorum; at the end, which may come first, the exit code of the work.

    To reach the quorum, a MiniCluster that was suspended because it was idle is woken. ``say`` gets each new state.
    Raises StateError at the deadline, and at an end without an exit code.
    """
    end, lead = look_for(cluster, is_ready if until == "quorum" else None, say)
    if end is None:
        return 0
    code, text = code_of_work(end[0], lead), ended(cluster.name, end, lead)
    if code is None:
        raise StateError(text)
    say(text)
    return code


def is_ready(lead: Lead) -> bool:
    """Return whether the quorum is there."""
    return lead.is_ready


def look_for(
    cluster: Cluster, is_there: Callable[[Lead], bool] | None, say: Say, check: Callable[[Found], None] | None = None
) -> tuple[tuple[str, str] | None, Lead | None]:
    """Wait until ``is_there`` accepts the lead, or for the end; return the end if that came first, and the lead.

    With ``is_there`` a MiniCluster that was suspended because it was idle is woken. ``check`` gets its objects, with
    the reasons why it is not there yet, and may raise an error. Raises DeadlineError at the deadline.
    """
    kubernetes, name = cluster.kubernetes, cluster.name
    evidence = KubectlEvidence(kubernetes)
    tell = StateTeller(evidence, name, say)
    with tell.at_deadline():
        for job, lead in looks(cluster):
            end = end_in_words(evidence, name, job, lead)
            if end or (is_there and lead and is_there(lead)):
                return end, lead
            if is_there and is_asleep(job):
                why = job["metadata"]["annotations"][SUSPENDED]
                say(f"{name} is suspended, {why}: waking it")
                with refusals():
                    wake(ByKubectl(kubernetes, name))
                continue
            found = tell(job, lead)
            if check:
                check(found)
    raise AssertionError  # looks only ends with an error
