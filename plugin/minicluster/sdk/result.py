"""What a command printed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    exit_code: int  #: 128 plus the signal's number if a signal ended the command
    stdout: str  #: of `MiniCluster.run` the log of the lead
    stderr: str  #: of `MiniCluster.run` always empty
