"""Where a MiniCluster is, and what to say of one whose lead can't be used now."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from minicluster.errors import StateError, StatusError
from minicluster.kubectl import CommandError, Kubernetes
from minicluster.live.lead import Lead, code_of_work, labels_of_lead, read_lead
from minicluster.status import ask
from minicluster.status.document import document
from minicluster.status.objects import read_job
from minicluster.status.pods import Pod


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


def describe(kubernetes: Kubernetes, name: str, job: Mapping[str, Any], lead: Lead | None) -> tuple[str, str]:
    """Return the state of a MiniCluster, and why; how far the quorum is, is asked of the lead. Raises CommandError."""
    found, pods = read_job(job), {0: lead.pod} if lead else {}
    if lead and lead.pod.is_leaving:
        return "Starting", f"the lead's pod {lead.pod.name} was told to stop; Kubernetes replaces it when it has ended"
    known = ask.state_without_flux(name, found, pods)
    if known or (lead and lead.is_ready):
        return known or ("Running", "")

    def question(pod: Pod) -> str:
        try:
            return ask.ask_lead(kubernetes, pod)
        except StatusError as error:
            raise ask.SilentError(str(error)) from None

    shown = document(ask.snapshot(name, datetime.now(UTC), pods, found, question))
    if shown["state"] == "Running" and lead:
        return "Starting", f"the quorum is there, and Kubernetes has yet to see that the pod {lead.pod.name} is ready"
    return shown["state"], shown["why"]


def teller(
    kubernetes: Kubernetes, name: str, say: Callable[[str], None]
) -> Callable[[Mapping[str, Any], Lead | None], None]:
    """Return a function that says the state of a MiniCluster, of its Job and its lead, when it is a new one."""
    told = ""

    def tell(job: Mapping[str, Any], lead: Lead | None) -> None:
        nonlocal told
        state = ": ".join(filter(None, describe(kubernetes, name, job, lead)))
        if state != told:
            say(f"{name}: {state}")
        told = state

    return tell


def ended(name: str, end: tuple[str, str], lead: Lead | None) -> str:
    """Return how a MiniCluster ended, as a sentence."""
    code = code_of_work(end[0], lead)
    how = "" if code is None else f" (exit code {code})"
    return f"{name} has ended{how}: {': '.join(filter(None, end))}"
