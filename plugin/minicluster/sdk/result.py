"""What a command printed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str
