"""The queue of a MiniCluster: takes jobs, which are commands or Python functions, and lists them.

Its session begins with the first request. A function goes to a node pickled, and its result or error comes back so.
"""

import base64
import io
import sys
import threading
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from minicluster.kube.port import Channel, KubePort
from minicluster.lead import ask
from minicluster.lead.program import program_text
from minicluster.sdk.exceptions import ArgumentError, SdkError, WaitTimeoutError
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.jobs import JobOptions, JobTable, job_of, words_of
from minicluster.sdk.lead import wait_for_lead
from minicluster.sdk.outcome import FinishedJob, OutputRequest, Piece, value_of
from minicluster.sdk.requests import Attachment, JobsQuestion, Submission
from minicluster.sdk.session import Session

#: The most that a function with its arguments has when it is pickled, and the same of what it returns
CALL_BYTES = 4 << 20
#: A bytecode is for one version of Python: takes that of the image, else the view's
FIND_PYTHON = """
command -v "python$1" >/dev/null 2>&1 && exec "python$1" "$2/call_function.py" "$3"
for python in python3 python 'flux python'; do
  version=$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
  [ "$version" != "$1" ] || exec $python "$2/call_function.py" "$3"
  seen="$seen${seen:+, }$python is $version"
done
echo "the function is from Python $1, and this node has no such Python (${seen:-none at all}): \
use an image with Python $1, or run your program with a Python of the node" >&2
exit 127"""


class Call(NamedTuple):
    """A job that calls a function."""

    name: str
    words: list[str]
    files: Mapping[str, str]  #: that the job's folder gets, in base64


def work_of(command: Any, arguments: Sequence[object] = (), keywords: Mapping[str, Any] | None = None) -> Any:
    """Return the words of a command with its arguments, or the call of a function. Raises ArgumentError."""
    if isinstance(command, Call):
        return command
    if callable(command):
        return _call_of(command, arguments, keywords or {})
    return words_of(command, arguments)


def in_batches(function: Callable[..., Any]) -> Callable[[list[Any]], list[Any]]:
    """Return a function of several tuples of arguments. It is pickled by value, as it has no name in this module."""

    def batched(batch: list[Any]) -> list[Any]:
        return [function(*each) for each in batch]

    batched.__name__ = _name_of(function)  # the job's
    return batched


def batches(every: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of so many."""
    rest = iter(every)
    while batch := [*islice(rest, size)]:
        yield batch


def _call_of(function: Callable[..., Any], arguments: Sequence[object], keywords: Mapping[str, Any]) -> Call:
    """Return the call of a function. Raises ArgumentError, SdkError without cloudpickle."""
    name, cloudpickle = _name_of(function), _cloudpickle()
    try:
        data = cloudpickle.dumps((function, arguments, keywords))
    except Exception as error:
        raise ArgumentError(f"{name} can't be sent to a node: {error}") from error
    if len(data) > CALL_BYTES:
        raise ArgumentError(
            f"{name} has {len(data)} bytes with its arguments, more than {CALL_BYTES}: write them to a file, give its "
            "name to the function, and bring it to the nodes by upload="
        )
    files = {"function": zlib.compress(data), "call_function.py": program_text("call_function").encode()}
    if b"cloudpickle" in data:
        files["cloudpickle.zip"] = _packed()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    words = ["/bin/sh", "-c", FIND_PYTHON, "minicluster", version, "{{tmpdir}}", str(CALL_BYTES)]
    return Call(name, words, {path: base64.b64encode(content).decode() for path, content in files.items()})


def _name_of(function: Callable[..., Any]) -> str:
    inner = function.func if isinstance(function, partial) else function
    return str(getattr(inner, "__name__", type(inner).__name__))


def _cloudpickle() -> ModuleType:
    try:
        return import_module("cloudpickle")
    except ImportError:
        raise SdkError("functions need cloudpickle: pip install 'minicluster[functions]'") from None


@cache
def _packed() -> bytes:
    """Return cloudpickle itself: few images have it, and none the same version."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(Path(str(_cloudpickle().__file__)).parent.glob("*.py")):
            archive.write(path, f"cloudpickle/{path.name}")
    return buffer.getvalue()


class FunctionFuture(JobFuture):
    """The future of a function. Its result is what the function returned; it raises what the function raised."""

    job: FinishedJob | None = None  #: the job, once it has ended: its output, nodes and times

    def _settle(self, job: FinishedJob) -> None:
        self.job = job
        try:
            value = value_of(job)
        except BaseException as error:
            self.set_exception(error.with_traceback(None))
        else:
            self.set_result(value)


class JobQueue:
    """Talks to the lead of a MiniCluster about its jobs."""

    def __init__(self, kube: KubePort, name: str, connect: Callable[..., Channel] | None = None) -> None:
        """Talk over what ``connect`` starts, by default on the lead."""
        self._kube, self._name = kube, name
        self._session = Session(connect or partial(_connect, kube, name))
        # who forgets to close it, and has no open job, leaves no connection
        weakref.finalize(self, self._session.close, "nobody uses it").atexit = False

    def submit(self, work: list[str] | Call, options: JobOptions) -> JobFuture:
        """Submit a command's words, or a call, as a job; return its future. Raises ArgumentError, ClosedError."""
        if isinstance(work, Call):
            if options.get("instance"):
                raise ArgumentError(f"instance=True is for commands: {work.name} has one Python, so leave it out")
            called = {**job_of(work.words, {"name": work.name, **options}), "files": work.files}
            return self._followed(lambda future: Submission(called, future), FunctionFuture)
        job = job_of(work, options)
        return self._followed(lambda future: Submission(job, future))

    def job(self, name: str) -> JobFuture:
        """Return the future of a job by its id: that which there is, if the job is followed already.

        Raises ArgumentError, ClosedError.
        """
        if not (isinstance(name, str) and name):
            raise ArgumentError(f"{name!r} is no job's id: give one that jobs(ended=True) has")
        name = _one_form(name)
        known = (one for one in self._session.open_requests() if isinstance(one, Submission))
        futures = (one.future for one in known if _one_form(one.name) == name)
        return next(futures, None) or self._followed(lambda future: Attachment(name, future))

    def _followed(self, request: Callable[[JobFuture], Submission], kind: type[JobFuture] = JobFuture) -> JobFuture:
        """Return a new future, for which a request is sent."""

        def cancel() -> None:
            self._session.say(submission, submission.cancellation())

        submission = request(kind(cancel, self._output, lambda: self._session.problem))
        self._session.send(submission)
        return submission.future

    def _output(self, name: str) -> Iterator[Piece]:
        """Yield what a job prints, until its end. Raises OutputGone, and what the session fails with."""
        output = OutputRequest(name)
        self._session.send(output)
        try:
            while (pieces := output.take()) is not None:
                yield from pieces
                if output.is_paused:
                    self._session.say(output, [output.message()])
        finally:
            self._session.say(output, output.stop(), is_last=True)

    def jobs(self, *, ended: bool, timeout: float | None) -> JobTable:
        """Return the jobs, the oldest first. Raises WaitTimeoutError, and what the session fails with."""
        question = JobsQuestion(ended=ended)
        self._session.send(question)
        try:
            return question.answer.result(timeout)
        except TimeoutError as error:
            if isinstance(error, WaitTimeoutError):
                raise
            why = ": ".join(filter(None, (f"no answer within {timeout} s", self._session.problem)))
            way = f"`minicluster status {self._name}` says more"
            raise WaitTimeoutError(f"{self._name} in {self._kube}: {why}: {way}") from None

    def close(self, seconds: float) -> None:
        """End the session, within some seconds; the futures of unfinished jobs raise ClosedError."""
        self._session.close(f"{self._name} was closed before this was over", seconds)


def _one_form(name: str) -> str:
    """Return an id in the form that Flux shows, where it is written with an f."""
    return name.replace("f", "\u0192", 1) if name.startswith("f") else name


def _connect(kube: KubePort, name: str, stop: threading.Event, note: Callable[[str], None]) -> Channel:
    return ask.start(kube, wait_for_lead(kube, name, stop=stop, note=note))
