"""What a node says in the log of its pod, and how it names jobs and sizes there.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import sys
from typing import Iterable

#: The digits of Flux's short ids (RFC 19)
F58_DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def say(text: str) -> None:
    """Tell the pod's log."""
    print(f"minicluster: {text}", file=sys.stderr, flush=True)


def size(number: int) -> str:
    """Return bytes as people write them.

    >>> size(2 << 30), size(1717986918), size(300 << 20)
    ('2 GiB', '1.6 GiB', '300 MiB')
    """
    unit, scale = ("GiB", 1 << 30) if number >= 1 << 30 else ("MiB", 1 << 20)
    return f"{number / scale:.1f}".replace(".0", "") + f" {unit}"


def f58(job: int) -> str:
    """Return the short id of a job without Flux's bindings, which take 7 MiB.

    >>> f58(62226694144)
    'f2dom5Dy'
    """
    digits = ""
    while job or not digits:
        job, digit = divmod(job, len(F58_DIGITS))
        digits = F58_DIGITS[digit] + digits
    return f"f{digits}"


def by_name(jobs: Iterable[int]) -> str:
    """Return jobs, one of which is meant.

    >>> by_name([1]), by_name([1, 2])
    ('job f2', 'one of the jobs f2, f3')
    """
    names = sorted(map(f58, jobs))
    return f"job {names[0]}" if len(names) == 1 else f"one of the jobs {', '.join(names)}"
