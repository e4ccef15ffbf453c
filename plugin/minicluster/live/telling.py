"""Messages about a MiniCluster whose lead can't be used now, and about one that has ended."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from minicluster.cluster.find import Found
from minicluster.cluster.job import end_of, read_job
from minicluster.cluster.lead import Lead, code_of_work
from minicluster.cluster.pods import Pod
from minicluster.cluster.without_flux import state_without_flux
from minicluster.errors import StatusError
from minicluster.kubectl import Kubernetes
from minicluster.lead.question import LateError, Question, SilentError
from minicluster.live import snapshot
from minicluster.live.document import document
from minicluster.live.lookup import Cluster


def question(kubernetes: Kubernetes) -> Question:
    """Return a function that asks a lead by kubectl."""

    def asked(pod: Pod) -> str:
        try:
            return snapshot.ask_lead(kubernetes, pod)
        except (StatusError, SilentError) as error:
            # the deadline cuts a question off
            raise (LateError if kubernetes.is_late else SilentError)(str(error)) from None

    return asked


def describe(asked: Question, name: str, job: Mapping[str, Any], lead: Lead | None) -> tuple[str, str]:
    """Return the state of a MiniCluster, and why. The lead is asked how many brokers the quorum lacks."""
    found = Found(name, {0: lead.pod} if lead else {}, read_job(job))
    if lead and lead.pod.is_leaving and not (found.job and found.job.is_suspended):
        return "Starting", f"the lead's pod {lead.pod.name} was told to stop; Kubernetes replaces it when it has ended"
    now = datetime.now(UTC)
    known = state_without_flux(found, now)
    if known or (lead and lead.is_ready):
        return known or ("Running", "")

    shown = document(snapshot.snapshot(found, now, asked))
    if shown["state"] == "Running" and lead:
        return "Starting", f"the quorum is there, and Kubernetes has yet to see that the pod {lead.pod.name} is ready"
    return shown["state"], shown["why"]


def teller(asked: Question, name: str, say: Callable[[str], None]) -> Callable[[Mapping[str, Any], Lead | None], None]:
    """Return a function that takes a MiniCluster's Job and lead, and says its state when that has changed."""
    told = ""

    def tell(job: Mapping[str, Any], lead: Lead | None) -> None:
        nonlocal told
        try:
            state = ": ".join(filter(None, describe(asked, name, job, lead)))
        except LateError:
            return
        # only the seconds of a back-off differ: that is no news
        news = re.sub(r"\d+ s$", "", state)
        if news != told:
            say(f"{name}: {state}")
        told = news

    return tell


def ended(name: str, end: tuple[str, str], lead: Lead | None) -> str:
    """Return how a MiniCluster ended, as a sentence."""
    code = code_of_work(end[0], lead)
    how = "" if code is None else f" (exit code {code})"
    return f"{name} has ended{how}: {': '.join(filter(None, end))}"


def end_in_words(cluster: Cluster, job: Mapping[str, Any], lead: Lead | None) -> tuple[str, str] | None:
    """Return how a MiniCluster ended, and why, from the failed pod's log too; None while it lives."""
    end, found = end_of(cluster.name, job), read_job(job) if job else None
    if end and end[0] == "Failed" and found:
        return snapshot.why_failed(cluster.kubernetes, found, lead.pod if lead else None)
    return end or (lead.kept_end if lead else None)
