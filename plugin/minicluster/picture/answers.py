"""What a picture tells of one job, which the lead is asked for: why it is so, its command, the end of its output."""

import json
from typing import Any

from minicluster.errors import ChoiceError, MiniClusterError
from minicluster.kube.port import KubePort
from minicluster.lead import ask
from minicluster.lead.program import BOOT
from minicluster.status.lookup import find
from minicluster.status.reported import ASK
from minicluster.status.why import job_in_words, sizes_of


def job_answer(kube: KubePort, name: str, job: str) -> dict[str, Any]:
    """Return what a page shows of a job: ``why`` in sentences, its ``command`` and ``output``, or an ``error``."""
    try:
        cluster = find(kube, name)
        if 0 not in cluster.pods:
            raise ChoiceError(f"{name} has no lead now: what the page shows is all that is known")
        known = json.loads(ask.ask(kube, cluster.pods[0], "job of a picture", ("/bin/sh", "-c", ASK, BOOT, job)))
    except (MiniClusterError, ValueError) as error:
        return {"error": str(error)}
    if "error" in known or not known["job"]:
        return {"error": f"{name} has no job {job} any more"}
    why = [text for text, _ in job_in_words(name, {**known, "said": []}, sizes_of(cluster))]
    return {"why": why, "command": known["command"], "output": known["output"]}
