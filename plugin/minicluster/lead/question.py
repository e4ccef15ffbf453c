"""The question that `minicluster status` asks the lead, and its answer."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.cluster.pods import Pod
from minicluster.lead.program import BOOT, first_line

#: Prints a JSON list: the settings of the lead's pod, and what Flux knows. Takes BOOT, and `standard_input`
QUESTION = (
    'printf "[" && cat "$MINICLUSTER_HOME/minicluster/agent.json" && printf "," && '
    '"$MINICLUSTER_HOME/bin/flux" python -c "$0" && printf "]"'
)
#: The words that run it in the lead's pod
WORDS = ("sh", "-c", QUESTION, BOOT)

#: Returns what QUESTION prints in a pod, or raises SilentError
Question = Callable[[Pod], str]


class SilentError(Exception):
    """The lead gave no answer; the text says why."""


class LateError(Exception):
    """There was no time for the lead's answer."""


@dataclass(frozen=True)
class Answer:
    """The lead's answer: ``agent.json`` of its ConfigMap, and the summary that ``pod/queue/state.py`` prints."""

    settings: Mapping[str, Any]
    flux: Mapping[str, Any]


def standard_input() -> str:
    """Return the standard input of QUESTION."""
    return first_line("waiting")


def read_answer(text: str) -> Answer:
    """Return what the lead's pod printed: a list of its settings and Flux's summary.

    Raises ValueError when it is something else.
    """
    settings, flux = json.loads(text)
    return Answer(settings, flux)
