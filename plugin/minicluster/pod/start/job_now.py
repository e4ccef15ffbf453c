"""job_now.py JOB: prints what a job that runs has used on this node until now, as a line of JSON (used_now.py).

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from idle_jobs import cpu_seconds
from node_jobs import jobs, shells


def main(job: int) -> None:
    """Print it; what is unknown is left out."""
    told: dict[str, float] = {"cpu_seconds": cpu_seconds([*jobs().get(job, []), *shells([job])])}
    with suppress(OSError, ValueError):  # the guard has yet to look at it
        text = Path(os.environ["MINICLUSTER_HOME"], "config/run/usage", str(job)).read_text(encoding="ascii")
        told["memory_peak"], told["memory_limit"] = map(int, text.split())
    print(json.dumps(told))


if __name__ == "__main__":
    main(int(sys.argv[1]))
