"""Runs a command of Slurm on the lead. After a cut, Flux is asked whether it has the jobs; they are followed again."""

import re
from collections.abc import Sequence
from pathlib import Path

from minicluster.cluster.lead import Lead
from minicluster.console.streams import Say
from minicluster.errors import StateError
from minicluster.exec.found_again import Attached, read_only
from minicluster.exec.input import Input
from minicluster.exec.piped import CutError
from minicluster.kube.kubectl import Kubernetes

#: Runs a command of Slurm, which an older version of the chart hasn't
FIND = (
    '[ -x "$0" ] || { echo "${0##*/}: the pods have no Slurm commands, as an older chart made them: '
    'minicluster replace makes them anew" >&2; exit 127; }; "$0" "$@"'
)
#: The same for what submits: no kill of the lead loses an id that is shown then
SAVE = '; code=$?; "${0%/*/*}/bin/flux" kvs put --sync minicluster.saved=1 >/dev/null 2>&1; exit $code'
#: Variables for slurm_jobspec.py and slurm_submit.py
KEY_VARIABLE, STDIN_VARIABLE = "MINICLUSTER_SLURM_CLIENT", "MINICLUSTER_SLURM_SCRIPT"
#: Flux's digits of an id (RFC 19, F58)
F58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def number(name: str) -> int:
    """Return the number of a job's id in F58.

    >>> number("f2a9RQ8Kb")
    5013345272331
    """
    value = 0
    for digit in name.removeprefix("f"):
        value = value * len(F58) + F58.index(digit)
    return value


def read_script(script: str) -> Input:
    """Return the file of a script. Raises StateError."""
    try:
        return Input(Path(script).open("rb"))
    except OSError as error:
        why = f"{error.strerror} in {Path.cwd()}; it is read here, not in the pods"
        raise StateError(f"sbatch: error: Unable to open file {script}: {why}") from None


class Slurm(Attached):
    """A command of Slurm; ``script`` is the file that it reads, on this side."""

    def __init__(self, kubernetes: Kubernetes, lead: Lead, say: Say, script: Input | None = None) -> None:
        super().__init__(kubernetes, lead, say, script)
        self._has_script = script is not None

    def run(self, words: Sequence[str]) -> int:
        """Run it by name and words, and return its exit code. Raises CutError, StateError."""
        while True:
            try:
                return self._submit(words) if words[0] == "sbatch" else self._run(self._line(words, FIND))
            except CutError as cut:
                if words[0] not in ("sbatch", "srun", "salloc"):
                    raise
                code = self._again_after(cut, words)
                if code is not None:
                    return code

    def _line(self, words: Sequence[str], program: str) -> list[str]:
        variables = [f"{KEY_VARIABLE}={self._key}", *([f"{STDIN_VARIABLE}=1"] if self._has_script else [])]
        name, *rest = words
        return ["env", *variables, "/bin/sh", "-c", program, f"{self._lead.home}/slurm/{name}", *rest]

    def _submit(self, words: Sequence[str]) -> int:
        """Return the exit code; unless sbatch waits, no id is shown before it is saved. Raises CutError, StateError."""
        if "--wait" in words:
            return self._run(self._line(words, FIND))
        return self._run_held(self._line(words, FIND + SAVE))

    def _again_after(self, cut: CutError, words: Sequence[str]) -> int | None:
        """Return the exit code of what goes on after a cut; None: it is to run again. Raises StateError."""
        former = self._lead.uid
        if words[0] != "sbatch":
            job = self._find(cut, "find")
            if "exit_code" in job:
                return self._ended(job)
            if job:
                self._written.again()
                return self.attach(("job", "attach", *read_only(job), job["id"]), self._place(job))
        elif ids := self._find(cut, "taken").get("ids", []):
            return self._taken(words, ids, cut)
        if not self._stdin.has(0) or (not cut.process and former == self._lead.uid):
            raise StateError(f"{cut.reason}: no job was submitted so far: {self._goes_on()}") from None
        return None

    def _taken(self, words: Sequence[str], ids: Sequence[str], cut: CutError) -> int:
        """Print what sbatch prints of a job that Flux has. Raises StateError for an array, which may lack tasks."""
        first = number(ids[0])
        self._written.complete(f"{first}\n" if "--parsable" in words else f"Submitted batch job {first}\n")
        if any(re.match("--array", word) for word in words):
            raise StateError(f"{cut.reason}: Flux has taken {len(ids)} tasks of job {first}: look at them by squeue")
        return self.attach(("job", "attach", ids[0])) if "--wait" in words else 0
