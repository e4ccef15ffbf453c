"""Where a MiniCluster is, and what to say of one whose lead can't be used now."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from minicluster.errors import StateError, StatusError
from minicluster.kubectl import CommandError, Kubernetes
from minicluster.live.lead import Lead, code_of_work, end_of, labels_of_lead, read_lead
from minicluster.status import ask
from minicluster.status.document import document
from minicluster.status.objects import read_job
from minicluster.status.pods import Pod

#: Returns what `ask.QUESTION` prints in a pod, or raises `ask.SilentError`
Question = Callable[[Pod], str]


@contextmanager
def refusals() -> Iterator[None]:
    """Make one line of what Kubernetes refuses, with the way out. Raises StateError."""
    try:
        yield
    except CommandError as error:
        way = "ask for a Role that allows it" if error.is_forbidden else "check KUBECONFIG, --context and --namespace"
        raise StateError(f"{error.reason}: {way}") from None


def find_lead(kubernetes: Kubernetes, name: str) -> Lead | None:
    """Return the newest pod of index 0; None when there is none. Raises CommandError."""
    return read_lead(kubernetes.get("pods", f"--selector={labels_of_lead(name)}"))


def find_name(kubernetes: Kubernetes, name: str) -> str:
    """Return a MiniCluster's own name, of its own name or its release's. Raises StatusError."""
    return ask.find(kubernetes, name)[0]


def question(kubernetes: Kubernetes) -> Question:
    """Return what asks a lead by kubectl."""

    def asked(pod: Pod) -> str:
        try:
            return ask.ask_lead(kubernetes, pod)
        except (StatusError, ask.SilentError) as error:
            # what is asked at the deadline is cut off
            raise (ask.LateError if kubernetes.is_late else ask.SilentError)(str(error)) from None

    return asked


def describe(asked: Question, name: str, job: Mapping[str, Any], lead: Lead | None) -> tuple[str, str]:
    """Return the state of a MiniCluster, and why; how far the quorum is, is asked of the lead."""
    found, pods = read_job(job), {0: lead.pod} if lead else {}
    if lead and lead.pod.is_leaving and not (found and found.is_suspended):
        return "Starting", f"the lead's pod {lead.pod.name} was told to stop; Kubernetes replaces it when it has ended"
    known = ask.state_without_flux(name, found, pods, datetime.now(UTC))
    if known or (lead and lead.is_ready):
        return known or ("Running", "")

    shown = document(ask.snapshot(name, datetime.now(UTC), pods, found, asked))
    if shown["state"] == "Running" and lead:
        return "Starting", f"the quorum is there, and Kubernetes has yet to see that the pod {lead.pod.name} is ready"
    return shown["state"], shown["why"]


def teller(asked: Question, name: str, say: Callable[[str], None]) -> Callable[[Mapping[str, Any], Lead | None], None]:
    """Return a function that says the state of a MiniCluster, of its Job and its lead, when it is a new one."""
    told = ""

    def tell(job: Mapping[str, Any], lead: Lead | None) -> None:
        nonlocal told
        try:
            state = ": ".join(filter(None, describe(asked, name, job, lead)))
        except ask.LateError:
            return
        # the seconds of a back-off are no news
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


def end_in_words(
    kubernetes: Kubernetes, name: str, job: Mapping[str, Any], lead: Lead | None
) -> tuple[str, str] | None:
    """Return how a MiniCluster ended, and why, also by the log of the pod that failed; None while it lives."""
    end, found = end_of(name, job), read_job(job) if job else None
    if end and end[0] == "Failed" and found:
        return ask.why_failed(kubernetes, found, lead.pod if lead else None)
    return end
