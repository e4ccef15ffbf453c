"""The log of the lead by `kubectl logs`, also over the end of its pod."""

import subprocess
from collections.abc import Callable
from typing import NamedTuple

from minicluster import streams
from minicluster.errors import StateError
from minicluster.kubectl import CommandError, Kubernetes, reason
from minicluster.live.find import describe, end_in_words, ended, find_lead, find_name, question, refusals, teller
from minicluster.live.lead import Lead, end_of
from minicluster.live.loglines import NewLines
from minicluster.live.watch import looks

Say = Callable[[str], None]


def show(kubernetes: Kubernetes, name: str, container: str) -> None:
    """Print the log of the lead that is there, or was the last one. Raises StateError when there is none."""
    name = find_name(kubernetes, name)
    with refusals():
        lead = find_lead(kubernetes, name)
        job = {} if lead else kubernetes.get("job", name)
    if lead is None:
        end = end_in_words(kubernetes, name, job, lead)
        why = ended(name, end, None) if end else ": ".join(describe(question(kubernetes), name, job, None))
        raise StateError(f"there is no log: {why}")
    _Log(kubernetes, lead, container).copy(follow=False)


def follow(kubernetes: Kubernetes, name: str, container: str, say: Say) -> None:
    """Print the log of the lead, and of those that replace it, until the MiniCluster ends. Raises StateError."""
    name = find_name(kubernetes, name)
    log: _Log | None = None
    tell = teller(question(kubernetes), name, say)
    for job, lead in looks(kubernetes, name):
        end = end_of(name, job)
        if lead and (log is None or log.uid != lead.uid):
            if log:
                # what came after the connection broke
                log.copy(follow=True)
                say(f"the lead was replaced: the log goes on with pod {lead.pod.name}")
            log = _Log(kubernetes, lead, container)
        if log and lead and lead.pod.phase != "Pending":
            log.copy(follow=not end)
        if end:
            say(ended(name, end_in_words(kubernetes, name, job, lead) or end, lead))
            return
        if not lead or lead.pod.phase != "Running":
            tell(job, lead)


class _Output(NamedTuple):
    """How kubectl ended."""

    code: int
    stderr: str


class _Log:
    """The log of one pod, of which no line is printed twice."""

    def __init__(self, kubernetes: Kubernetes, lead: Lead, container: str) -> None:
        self.uid = lead.uid
        self._kubernetes, self._pod, self._container = kubernetes, lead.pod.name, container or lead.pod.runner
        self._new = NewLines()

    def copy(self, *, follow: bool) -> None:
        """Print the lines that were not printed before, as far as the connection goes.

        With ``follow`` a pod that is gone, or has not begun, has no lines. Raises StateError.
        """
        words = ("logs", self._pod, f"--container={self._container}", "--timestamps", f"--follow={str(follow).lower()}")
        done = self._print(self._kubernetes.words(*words))
        if not done.code:
            return
        error = CommandError("kubectl logs", reason(done.stderr) or f"exit code {done.code}")
        if error.is_forbidden:
            with refusals():
                raise error
        if not follow or "is not valid for pod" in error.reason:
            raise StateError(f"there is no log: {error.reason}")

    def _print(self, words: list[str]) -> _Output:
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as process:  # noqa: S603
            try:
                for line in process.stdout or ():
                    text = self._new.text(line.decode(errors="surrogateescape"))
                    if text is not None:
                        streams.write(text.encode(errors="surrogateescape"))
                stderr = process.stderr.read().decode(errors="replace") if process.stderr else ""
            finally:
                process.kill()
        return _Output(process.returncode, stderr)
