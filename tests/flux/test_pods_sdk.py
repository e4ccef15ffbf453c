"""The Python SDK on a real Kubernetes."""

import concurrent.futures
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from minicluster.sdk import EndedError, JobFailed, JobLost, JobRefused, MiniCluster, NotFoundError
from pod_jobs import wait_for_checkpoint
from real_cluster import IN_PODS

from tools import testbed
from tools.clients import until
from tools.releases import MOUNT, STEP_SECONDS, FluxRelease
from tools.testbed import NAME, bind

pytestmark = IN_PODS

TWO = {"size": 2, "maxSize": 4, "interactive": True, "logging": {"quiet": True}}
Create = Callable[..., tuple[MiniCluster, FluxRelease]]


@pytest.fixture
def create(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Create]:
    """Makes MiniClusters by the SDK, in namespaces of their own; also as the tests see them."""
    for name, value in testbed.kubernetes().env.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:

        def create(values: dict[str, Any], prepare: Callable[[FluxRelease], object] = lambda _: None) -> Any:
            namespace = stack.enter_context(testbed.new_namespace())
            every = testbed.values_of({**TWO, **values}, {"cores": 4})
            release = testbed.release(namespace, every, tmp_path)
            prepare(release)
            return stack.enter_context(MiniCluster.create(NAME, namespace, every)), release

        yield create


def test_the_sdk_runs_jobs_and_returns_their_results(create: Create) -> None:
    cluster, _ = create({})
    # jobs wait for the quorum by themselves
    begin = time.monotonic()
    first = cluster.submit("hostname", nodes=2)
    assert sorted(first.result(STEP_SECONDS).output.split()) == ["mini-0", "mini-1"]
    start = time.monotonic() - begin
    begin = time.monotonic()
    futures = [cluster.submit(["echo", f"number {number}"]) for number in range(50)]
    assert [future.result(STEP_SECONDS).output for future in futures] == [f"number {number}\n" for number in range(50)]
    print(f"first job {start:.1f} s after the installation, 50 jobs in {time.monotonic() - begin:.1f} s")
    assert len({future.id for future in futures}) == 50

    job = cluster.submit(
        ["sh", "-c", 'printf "%s|%s|%s" "$A" "$(pwd)" "$FLUX_TASK_RANK"'],
        environment={"A": "é $x"},
        working_dir="/tmp",
        cores_per_task=2,
        name="named",
        attributes={"user.mine": 1},
    ).result(STEP_SECONDS)
    assert (job.stdout, job.exit_code) == ("é $x|/tmp|0", 0)
    spec = cluster.flux("job", "info", job.id, "jobspec").stdout
    assert '"mine":1' in spec.replace(" ", "")
    assert '"name":"named"' in spec.replace(" ", "")

    failing = cluster.submit("sh -c 'echo out; echo why >&2; exit 7'")
    with pytest.raises(JobFailed, match=r"job \S+ failed with exit code 7: why") as caught:
        failing.result(STEP_SECONDS)
    assert (caught.value.exit_code, caught.value.job.stdout, caught.value.job.stderr) == (7, "out\n", "why\n")
    with pytest.raises(JobFailed, match="no-such-program: No such file or directory"):
        cluster.submit("no-such-program").result(STEP_SECONDS)
    with pytest.raises(JobFailed, match="ran into its time limit"):
        cluster.submit("sleep 60", time_limit=1).result(STEP_SECONDS)
    with pytest.raises(JobRefused, match=r"doesn't take the job true: .*nowhere"):
        cluster.submit("true", attributes={"system.queue": "nowhere"}).result(STEP_SECONDS)
    file = {"system.shell.options.output.stdout": {"type": "file", "path": "/tmp/out"}}
    assert cluster.submit("echo much", attributes=file).result(STEP_SECONDS).output == ""
    assert cluster.submit("cat /tmp/out").result(STEP_SECONDS).output == "much\n"

    running = cluster.submit("sleep 600", nodes=2)
    # Flux checks jobs that come together in parallel, so the second may be the first in the queue
    running.wait_for_id(STEP_SECONDS)
    waiting = cluster.submit("sleep 600", nodes=2)
    until(lambda: running.running() or running.done(), STEP_SECONDS)
    waiting.wait_for_id(STEP_SECONDS)
    assert [(job.id, job.state) for job in cluster.jobs()] == [(running.id, "run"), (waiting.id, "sched")]
    assert waiting.cancel()
    assert running.cancel()
    assert concurrent.futures.wait([running, waiting], 0).not_done == set()
    until(lambda: not cluster.jobs())
    ended = {job.id: (job.state, job.result) for job in cluster.jobs(ended=True)}
    assert ended[running.id] == ended[waiting.id] == ("inactive", "canceled")

    # another client has its own view of the same job
    go = "echo first; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo last"
    slow = cluster.submit(["sh", "-c", go], attributes={"system.constraints": RANK_0})
    with MiniCluster.connect(NAME, cluster.namespace) as other:
        lines, own = other.job(slow.wait_for_id(STEP_SECONDS)).lines(), slow.lines("output")
        assert (next(lines), next(own), slow.done()) == ("first\n", "first\n", False)
        other.submit("touch /tmp/go", attributes={"system.constraints": RANK_0})
        assert list(lines) == ["last\n"]
    assert ([*own], slow.result(STEP_SECONDS).output) == (["last\n"], "first\nlast\n")

    with cluster.executor(tasks=1) as executor:
        assert [job.output for job in executor.map("echo -n", ["a b", 2])] == ["a b", "2"]


def test_the_sdk_waits_logs_scales_and_forwards_ports(create: Create) -> None:
    cluster, release = create({"logging": {"debug": True}})
    assert cluster.wait(timeout=STEP_SECONDS) is None
    lines: list[str] = []
    follow = threading.Thread(target=lambda: lines.extend(cluster.logs(follow=True)), daemon=True)
    follow.start()
    until(lambda: any("quorum" in line for line in cluster.logs()), STEP_SECONDS)

    result = cluster.flux("resource", "list", "-n", "-s", "free", "-o", "{nnodes} {ncores}")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "2 8\n", "")
    assert cluster.flux("no such command").exit_code == 1

    begin = time.monotonic()
    cluster.scale(4, wait=True, timeout=STEP_SECONDS)
    grown = time.monotonic()
    assert cluster.status()["nodes"] == {"up": 4, "drained": 0, "missing": 0, "notStarted": 0}
    assert len(set(cluster.submit("hostname", nodes=4).result(STEP_SECONDS).output.split())) == 4
    shrinking = time.monotonic()
    cluster.scale(2, wait=True, timeout=STEP_SECONDS)
    print(f"2 to 4 nodes in {grown - begin:.1f} s, 4 to 2 in {time.monotonic() - shrinking:.1f} s")
    assert cluster.status()["nodes"]["up"] == 2

    server = (
        "import socket\ns = socket.create_server(('127.0.0.1', 8000))\nc, _ = s.accept()\n"
        "c.sendall(c.recv(100).upper())\nc.close()\n"
    )
    listening = cluster.submit([f"{MOUNT}/bin/flux", "python", "-c", server], attributes={"system.constraints": RANK_0})
    with cluster.port_forward(8000) as forward:

        def ask() -> bytes:
            with socket.create_connection(("127.0.0.1", forward.port), 5) as client:
                client.sendall(b"hello")
                return client.recv(100)

        assert until(ask, STEP_SECONDS) == b"HELLO"
    listening.result(STEP_SECONDS)

    with MiniCluster.connect(NAME, cluster.namespace) as other:
        assert other.submit("true").result(STEP_SECONDS).exit_code == 0
    open_job = cluster.submit("sleep 600")
    open_job.wait_for_id(STEP_SECONDS)
    release.flux(0, "shutdown")
    assert isinstance(open_job.exception(STEP_SECONDS), (JobFailed, EndedError))
    assert cluster.wait("end", STEP_SECONDS) == 0
    assert cluster.status()["state"] == "Complete"
    follow.join(STEP_SECONDS)
    assert any("goodbye" in line for line in lines)
    assert all(one != other for one, other in itertools.pairwise(lines) if "goodbye" in one)
    with pytest.raises(EndedError):
        cluster.submit("true").result(STEP_SECONDS)
    with cluster:
        pass
    with pytest.raises(NotFoundError):
        cluster.status()


#: A job that runs on the lead only (RFC 31)
RANK_0 = {"ranks": ["0"]}


def test_a_future_raises_job_lost_when_the_queue_is_lost_with_its_lead(create: Create) -> None:
    cluster, release = create({})
    job = cluster.submit("sleep 600")
    job.wait_for_id(STEP_SECONDS)
    # with its pod: a broker alone comes back there with its queue
    release.kubectl("delete", "pod", release.pod(0), "--grace-period=0", "--force", "--wait=false")
    with pytest.raises(JobLost, match=f"job {job.id} is lost"):
        job.result(STEP_SECONDS)
    assert cluster.submit("echo back").result(STEP_SECONDS).output == "back\n"


def test_futures_follow_their_jobs_to_the_next_lead_when_the_state_is_kept(
    create: Create, volume: str, tmp_path: Path
) -> None:
    cluster, release = create(
        {"state": {"claimName": "claim"}}, lambda release: bind(release, "claim", volume, tmp_path / "state")
    )
    running = cluster.submit("sleep 600", nodes=2, name="first")
    behind = [cluster.submit(["echo", str(number)], nodes=2) for number in range(3)]
    for future in (running, *behind):
        future.wait_for_id(STEP_SECONDS)
    until(lambda: running.running() or running.done(), STEP_SECONDS)
    wait_for_checkpoint(release)
    release.kill_broker(0)
    assert isinstance(running.exception(STEP_SECONDS), JobFailed)
    assert [future.result(STEP_SECONDS).output.split() for future in behind] == [[str(n)] * 2 for n in range(3)]
    # each ran once
    assert len(cluster.jobs(ended=True)) == 4
