"""Python functions as jobs: what goes to a node, what comes back, and the libraries that use an executor."""

import os
import pickle
import re
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import called
import pytest
from minicluster.sdk import (
    ArgumentError,
    CommandExecutor,
    FinishedJob,
    FunctionFuture,
    Job,
    JobError,
    JobFailed,
    JobFuture,
    JobTable,
    RemoteTraceback,
    SdkError,
    WaitTimeoutError,
)
from minicluster.sdk.job_queue import CALL_BYTES, in_batches, work_of

cloudpickle = pytest.importorskip("cloudpickle")
#: A PATH with the Python of the tests
PYTHON = f"{Path(sys.executable).parent}:/usr/bin:/bin"


@pytest.fixture(autouse=True)
def _own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls run with the Python of the tests, and functions of this module be sent as those of a notebook."""
    monkeypatch.setattr(called, "run", partial(called.run, PATH=PYTHON))
    cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


class TwoError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def square(x: int, *, more: int = 0) -> int:
    return x * x + more


def fails(kind: str) -> Any:
    print("out")
    if kind == "two":
        raise TwoError(1, 2)
    if kind == "module":
        import no_such_module  # noqa: F401, PLC0415
    if kind == "lock":
        return threading.Lock()
    if kind == "large":
        return b"x" * (CALL_BYTES + 1)
    if kind == "exit":
        sys.exit(3)
    if kind == "ends":
        os._exit(0)
    raise KeyError(kind)


def test_a_function_returns_its_value_from_a_node(tmp_path: Path) -> None:
    executor = CommandExecutor(called.submit, {})
    assert executor.submit(square, 3, more=1).result() == 10
    assert executor.submit(int, "11", base=2).result() == 3
    assert list(executor.map(square, range(4))) == [0, 1, 4, 9]
    assert list(executor.map(pow, [2, 3, 4], [5, 6], chunksize=2)) == [32, 729]
    assert work_of(in_batches(partial(square, more=1)), [[(2,)]]).name == "square"
    point = executor.submit(Point, 3).result()
    assert (type(point), point.x) == (Point, 3)
    assert executor.submit(os.getcwd).result() == "/"
    # most nodes lack cloudpickle
    bare = tmp_path / f"python3.{sys.version_info.minor}"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    assert called.run(work_of(square, [3]), PATH=f"{tmp_path}:/usr/bin:/bin").value() == 9
    with pytest.raises(ArgumentError, match="chunksize=2: give 1 or more, and 1 for a command"):
        executor.map("echo", [1], chunksize=2)


def test_a_function_raises_what_it_raised_on_the_node_with_its_traceback_as_the_cause() -> None:
    with pytest.raises(KeyError, match=r"^'x'$") as caught:
        called.submit(work_of(fails, ["x"])).result()
    cause = caught.value.__cause__
    assert isinstance(cause, RemoteTraceback)
    where = r'Traceback \(most recent call last\):\n  File "[^"]*", line \d+, in fails\n(    .*\n)*'
    assert re.fullmatch(f"""\n\"{{3}}\n{where}KeyError: 'x'\n\"{{3}}""", str(cause))
    future = called.submit(work_of(fails, ["module"]))
    error = future.exception(0)
    assert (type(error), str(error)) == (ModuleNotFoundError, "No module named 'no_such_module'")
    assert "upload=FOLDER brings it to the nodes" in str(error and error.__cause__)
    assert future.job
    assert (future.state, future.job.exit_code, future.job.stdout) == ("failed", 1, "out\n")


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("two", JobFailed, "job f1 failed with exit code 1: .*TwoError: 1 and 2"),
        ("lock", TypeError, "what the function returned can't be pickled: cannot pickle '_thread.lock' object"),
        ("large", ValueError, r"what the function returned has \d+ bytes, more than 4194304: write it to a file, .*"),
        ("exit", JobFailed, "job f1 failed with exit code 3"),
        ("ends", JobError, "job f1 has no result of a function: it has another command, it ended Python by itself, .*"),
    ],
)
def test_a_result_that_can_not_come_back_is_an_error(kind: str, error: type[Exception], message: str) -> None:
    future = called.submit(work_of(fails, [kind]))
    with pytest.raises(error) as caught:
        future.result(0)
    assert re.fullmatch(message, str(caught.value))
    assert future.job
    with pytest.raises(error):
        future.job.value()


def test_a_function_is_refused_that_can_not_go_to_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match=r"^square can't be sent to a node: cannot pickle '_thread.lock' object$"):
        work_of(partial(square, threading.Lock()))
    with pytest.raises(ArgumentError, match=r"^len has \d+ bytes with its arguments, more than 4194304: .* by upload="):
        work_of(len, [b"x" * CALL_BYTES])
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(SdkError, match="functions need cloudpickle: pip install 'minicluster"):
        work_of(square, [1])


def test_a_node_with_another_python_says_which_versions_there_are(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\necho 3.8\n")
    (tmp_path / "python3").chmod(0o755)
    call = work_of(square, [3])
    words = [word if word != f"3.{sys.version_info.minor}" else "3.99" for word in call.words]
    job = called.run.func(call._replace(words=words), PATH=str(tmp_path))  # type: ignore[attr-defined]
    assert (job.exit_code, job.stderr) == (
        127,
        "the function is from Python 3.99, and this node has no such Python (python3 is 3.8): use an image with Python "
        "3.99, or run your program with a Python of the node\n",
    )


def test_only_the_first_task_of_a_job_returns_a_value() -> None:
    call = work_of(square, [3])
    assert called.run(call, FLUX_TASK_RANK="1").returned == ""
    job = called.run(call, FLUX_TASK_RANK="0")
    assert job.value() == 9
    other = FinishedJob("f1", 1, (), "failed with exit code 1", returned=job.returned)
    with pytest.raises(JobFailed):
        other.value()
    with pytest.raises(JobError, match=r"^job f1: what its function returned can't be read here: error: Error -5"):
        FinishedJob("f1", 0, returned="eA==").value()


def test_joblib_takes_an_executor() -> None:
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend=CommandExecutor(called.submit, {}).joblib(), n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(square)(x, more=1) for x in range(4)) == [1, 2, 5, 10]
        with pytest.raises(KeyError):
            joblib.Parallel()(joblib.delayed(fails)(x) for x in "ab")


def test_dask_takes_an_executor() -> None:
    dask = pytest.importorskip("dask")
    executor = CommandExecutor(called.submit, {})
    total = dask.delayed(sum)([dask.delayed(square)(x) for x in range(3)])
    with dask.config.set(pool=executor):
        assert total.compute() == 5
    assert total.compute(scheduler=executor) == 5


def test_a_future_shows_its_job_and_says_why_a_wait_took_too_long() -> None:
    future = JobFuture(lambda: None)
    assert repr(future) == "<JobFuture this job pending>"
    future.accept("f1")
    future.wait_for("needs 3 nodes")
    assert repr(future) == "<JobFuture job f1 pending: needs 3 nodes>"
    with pytest.raises(WaitTimeoutError, match=r"^job f1 has not ended within 0\.01 s: it waits: needs 3 nodes$"):
        future.result(0.01)
    future.start()
    with pytest.raises(TimeoutError, match=r"^job f1 has not ended within 0 s: it runs$"):
        future.exception(0)
    future.end(FinishedJob("f1", 0, nodes="mini-[0-1]", started=1.0, ended=3.5))
    assert (repr(future), future.result().runtime) == ("<JobFuture job f1 completed>", 2.5)
    raised = FunctionFuture(lambda: None)
    raised.fail(SdkError("no"))
    assert repr(raised) == "<FunctionFuture this job failed>"
    late = FunctionFuture(lambda: None)
    late.set_exception(TimeoutError("its own"))
    with pytest.raises(TimeoutError, match=r"^its own$"):
        late.result(0)


def test_a_notebook_shows_tables_of_jobs() -> None:
    left = " style='text-align:left'"
    job = Job("f1", "<b>", "inactive", "failed", 3, "mini-0", 1, 1.0, 2.04)
    head = "".join(f"<th{left}>{name}</th>" for name in ("job", "name", "state", "nodes", "tasks"))
    head += "".join(f"<th{left}>{name}</th>" for name in ("seconds", "exit code", "why"))
    cells = "".join(f"<td{left}>{text}</td>" for text in ("f1", "&lt;b&gt;", "failed", "mini-0", "1", "2.0", "3", ""))
    assert JobTable([job])._repr_html_() == f"<table><tr>{head}</tr><tr>{cells}</tr></table>"
    shown = FinishedJob("f1", 3, (), "failed", nodes="mini-0", started=1.0, ended=3.5)._repr_html_()
    texts = re.findall(r"<td[^>]*>([^<]*)", shown)
    assert (texts[:4], texts[-1]) == (["f1", "3", "failed", "mini-0"], "2.5")
    assert pickle.loads(pickle.dumps(FinishedJob("f1", 0))) == FinishedJob("f1", 0)
