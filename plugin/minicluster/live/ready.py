"""The lead that can take commands. A MiniCluster that was suspended because it was idle is woken first."""

from collections.abc import Callable

from minicluster.errors import StateError
from minicluster.kubectl import Kubernetes
from minicluster.live.find import describe, ended, find_lead, find_name, refusals
from minicluster.live.lead import Lead, end_of
from minicluster.live.wait import wait
from minicluster.live.wake import is_asleep, was_woken
from minicluster.status import ask

Say = Callable[[str], None]
#: Seconds that a MiniCluster which was woken has to reach its quorum
WAKING = 600.0


def find_ready_lead(kubernetes: Kubernetes, name: str, say: Say) -> Lead:
    """Return the lead of a MiniCluster that has its quorum; one that wakes is waited for.

    Raises StateError, StatusError.
    """
    # one request where all is well
    lead = _find(kubernetes, name)
    if lead and lead.is_ready:
        return lead
    name = find_name(kubernetes, name)
    with refusals():
        job = kubernetes.get("job", name)
    if is_asleep(job) or was_woken(job):
        wait(kubernetes, name, "quorum", WAKING, say)
        with refusals():
            job = kubernetes.get("job", name)
    lead = _find(kubernetes, name)
    if lead and lead.is_ready:
        return lead
    end = end_of(name, job)
    if end:
        raise StateError(ended(name, end, lead))
    state, why = describe(kubernetes, name, job, lead)
    raise StateError(f"{name} is {state}: {why}; `minicluster wait {name}` returns when it is ready")


def find_running_lead(kubernetes: Kubernetes, name: str, say: Say) -> Lead:
    """Return the lead of a MiniCluster as soon as its container runs. Raises StateError, StatusError."""
    lead = _find(kubernetes, name)
    if lead and lead.pod.phase == "Running":
        return lead
    return find_ready_lead(kubernetes, name, say)


def _find(kubernetes: Kubernetes, name: str) -> Lead | None:
    ask.check_name(name)
    with refusals():
        return find_lead(kubernetes, name)
