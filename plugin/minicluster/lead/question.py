"""The question that `minicluster status` asks the lead, and its answer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from minicluster.cluster.pods import FIND_TOOLS, Pod
from minicluster.kube.port import KubePort
from minicluster.lead.ask import ask
from minicluster.lead.program import BOOT

#: Prints a JSON list: the settings of the lead's pod, and what Flux knows. Takes BOOT, and the program
QUESTION = (
    FIND_TOOLS + 'printf "[" && cat "$MINICLUSTER_HOME/minicluster/agent.json" && printf "," && '
    '"$MINICLUSTER_HOME/bin/flux" python -c "$0" && printf "]"'
)
#: The words that run it in the lead's pod
QUESTION_WORDS = ("/bin/sh", "-c", QUESTION, BOOT)

#: Returns what QUESTION prints in a pod, or raises SilentError
Question = Callable[[Pod], str]


@dataclass(frozen=True)
class Answer:
    """The lead's answer: ``agent.json`` of its ConfigMap, and the summary that ``pod/queue/state.py`` prints."""

    settings: Mapping[str, Any]
    flux: Mapping[str, Any]

    @property
    def now(self) -> datetime | None:
        """The lead's time, if it tells that."""
        told = self.flux.get("now")
        return datetime.fromtimestamp(told, UTC) if told else None


def ask_status(kube: KubePort, lead: Pod) -> str:
    """Return what QUESTION prints in the lead's pod. Raises what `ask` raises."""
    return ask(kube, lead, "status", QUESTION_WORDS)


def read_answer(text: str) -> Answer:
    """Return what the lead's pod printed: a list of its settings and Flux's summary.

    Raises ValueError when it is something else.
    """
    settings, flux = json.loads(text)
    return Answer(settings, flux)
