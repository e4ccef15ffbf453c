"""detail.py ID: a job as a page shows it: what explain.py says, its ``command``, and the end of its ``output``.

Given to `flux python -c` by picture/answers.py. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import flux
from explain import explained, shortened
from flux.job import JobID
from output_events import OUTPUT_KEY, Tail, events, lookup

#: The end of an output that is told; characters of a command
END_BYTES, SHOWN_COMMAND_CHARACTERS = 20_000, 4000


def end_of_output(handle: Any, job: int) -> str:
    """Return the end of what a job has printed; "" where Flux has no output of it."""
    try:
        output = events(lookup(handle, job, OUTPUT_KEY))
    except OSError:
        return ""
    tail = Tail(END_BYTES)
    for event in output:
        tail.take(event["name"], event.get("context", {}))
    return b"".join(data for _, data in tail.kept).decode(errors="replace")


def main(text: str) -> dict[str, Any]:
    """Return what is known of a job. Raises OSError; ValueError for a text that is no id."""
    handle, number = flux.Flux(), int(JobID(text))
    explanation, jobspec = explained(handle, number)
    words = [str(word) for task in jobspec.get("tasks", ())[:1] for word in task["command"]]
    output = end_of_output(handle, number)
    return {**explanation, "output": output, "command": shortened(" ".join(words), SHOWN_COMMAND_CHARACTERS)}


if __name__ == "__main__":
    try:
        print(json.dumps(main(sys.argv[1])))
    except ValueError:
        print(json.dumps({"error": "no id"}))
