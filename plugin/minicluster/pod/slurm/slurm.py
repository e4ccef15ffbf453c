"""Slurm's commands on Flux: `slurm.py NAME WORD…`, with Slurm's messages and exit codes.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import importlib
import sys
from typing import Sequence

from slurm_options import VERSION
from slurm_parse import SlurmError

#: The module of each command
COMMANDS_IN = {
    "sbatch": "slurm_submit",
    "salloc": "slurm_submit",
    "srun": "slurm_submit",
    "squeue": "slurm_squeue",
    "sacct": "slurm_sacct",
    "sinfo": "slurm_sinfo",
    "scancel": "slurm_scontrol",
    "scontrol": "slurm_scontrol",
}
#: Errors that Slurm reports with the call that loads the jobs
_LOAD_ERRORS = ("Unable to contact", "Invalid job id specified")


def main(name: str, words: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    if words[:1] and words[0] in ("-V", "--version"):
        print(f"slurm {VERSION}")
        return 0
    try:
        return int(getattr(importlib.import_module(COMMANDS_IN[name]), name)(words))
    except SlurmError as error:
        # programs look for these words: batchspawner keeps a job whose state it can't know
        loads = (name == "squeue" or words[:1] == ["show"]) and str(error).startswith(_LOAD_ERRORS)
        print(f"{'slurm_load_jobs' if loads else f'{name}:'} error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"{name}: error: Flux: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
