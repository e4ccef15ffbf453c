"""What a page asks of the lead: why a job is so, its command and the end of its output; and to change things."""

import json
import re
from collections.abc import Mapping
from typing import Any

from minicluster.errors import ChoiceError, MiniClusterError, one_line
from minicluster.kube.names import OUR_PREFIX
from minicluster.kube.port import KubePort
from minicluster.lead import ask
from minicluster.lead.program import BOOT
from minicluster.status.lookup import Cluster, find
from minicluster.status.reported import ASK
from minicluster.status.why import job_in_words, sizes_of

#: Ids of jobs, and ranks
JOB_ID, RANK_NUMBER = re.compile(r"[fƒ]?[0-9A-Za-z]{1,20}"), re.compile(r"\d{1,9}")
#: What a page may change: what it is called there, and the words of flux
CHANGES = {
    "cancel": (JOB_ID, ("cancel",)),
    "drain": (RANK_NUMBER, ("resource", "drain")),
    "undrain": (RANK_NUMBER, ("resource", "undrain")),
}
#: Why a node is drained if nobody says it; the characters of a reason
PAGE_REASON, REASON_CHARACTERS = "drained from the page", 200


def change_words(asked: Mapping[str, Any]) -> list[str]:
    """Return the words of flux for what a page asks for. Raises ChoiceError."""
    kind, target, reason = (str(asked.get(key) or "") for key in ("change", "of", "reason"))
    if kind not in CHANGES:
        raise ChoiceError(f"a page can't do {kind!r}: choose {', '.join(CHANGES)}")
    known, words = CHANGES[kind]
    if not known.fullmatch(target):
        raise ChoiceError(f"{target!r} can't be what to {kind}")
    if kind != "drain":
        return [*words, target]
    reason = one_line(reason).strip()[:REASON_CHARACTERS] or PAGE_REASON
    if reason.startswith(OUR_PREFIX):
        raise ChoiceError(f"a reason that begins with {OUR_PREFIX!r} is that of a program: give another one")
    return [*words, "--", target, reason]


def change(kube: KubePort, name: str, asked: Mapping[str, Any]) -> dict[str, str]:
    """Do what a page asks for; return what was ``done``, or the ``error``."""
    try:
        words = change_words(asked)
        lead = Cluster(kube, name).read_lead()
        if not (lead and lead.is_ready):
            raise ChoiceError(f"{name} has no lead now: nothing is changed")
        ask.ask(kube, lead.pod, "change of a page", lead.flux_words(*words))
    except MiniClusterError as error:
        return {"error": str(error)}
    return {"done": " ".join(["flux", *words])}


def job_answer(kube: KubePort, name: str, job: str) -> dict[str, Any]:
    """Return what a page shows of a job: ``why`` in sentences, its ``command`` and ``output``, or an ``error``."""
    try:
        cluster = find(kube, name)
        if 0 not in cluster.pods:
            raise ChoiceError(f"{name} has no lead now: what the page shows is all that is known")
        known = json.loads(ask.ask(kube, cluster.pods[0], "why of a job", ("/bin/sh", "-c", ASK, BOOT, job, "shown")))
    except (MiniClusterError, ValueError) as error:
        return {"error": str(error)}
    if "error" in known or not known["job"]:
        return {"error": f"{name} has no job {job} any more"}
    why = [text for text, _ in job_in_words(name, {**known, "said": []}, sizes_of(cluster))]
    return {"why": why, "command": known["command"], "output": known["output"]}
