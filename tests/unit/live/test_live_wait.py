"""``minicluster wait`` and ``logs``, with a stand-in of kubectl."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import FORBIDDEN, WAITS, Kubectl, lead, say
from minicluster.errors import AwayError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.outage import Outage
from minicluster.waiting import wait
from status_samples import SETTINGS, STARTS, SUSPENDED, UNSCHEDULABLE, ended, flux, job, suspended

from tools.clients import Done

END = "PodFailurePolicy"
ROOM = "lower resources.requests or size; it starts when a Kubernetes node has room"


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    return Kubectl(tmp_path)


# wait -------------------------------------------------------------------------------------------------------------


def test_wait_reports_progress_until_the_quorum(kubectl: Kubectl) -> None:
    folder = kubectl.folder
    # the first request finds the cluster
    kubectl.has(
        pods_1={"items": []},
        pods_2={"items": [lead(folder, UNSCHEDULABLE)]},
        pods_3={"items": [lead(folder, WAITS)]},
        pods_4={"items": [lead(folder, WAITS)]},
        pods_5={"items": [lead(folder, WAITS)]},
        pods_6={"items": [lead(folder, WAITS)]},
    )
    kubectl.tool("sh", f"echo '{json.dumps([SETTINGS, flux(online='0-2')])}'")
    assert kubectl.run("wait", "mini", "--timeout", "30s") == Done(
        0,
        "",
        say(
            f"mini: Starting: the lead is Pending: Unschedulable: 1 Insufficient cpu: {ROOM}",
            "mini: Starting: waits for the quorum, 3 of 4 nodes are up",
            "mini: Running",
        ),
    )


@pytest.mark.parametrize(
    ("how", "state", "code", "message"),
    [
        ("Failed", ended(3), 3, f"mini has ended (exit code 3): Failed: {END}: said why"),
        ("Complete", ended(0), 0, f"mini has ended (exit code 0): Complete: {END}: said why"),
        ("Failed", None, 1, f"mini has ended: Failed: {END}: said why"),
        ("Complete", None, 0, f"mini has ended (exit code 0): Complete: {END}: said why"),
    ],
)
def test_wait_exits_with_the_code_of_the_work(kubectl: Kubectl, how: str, state: Any, code: int, message: str) -> None:
    gone: dict[str, Any] = {"items": [lead(kubectl.folder, state)] if state else []}
    kubectl.has(job_1=job(), job_2=job(), job=job(end=(how, END)), pods=gone, pods_2={"items": [lead(kubectl.folder)]})
    assert kubectl.run("wait", "mini", "--for", "end") == Done(code, "", say("mini: Running", message))


def kept(code: int) -> dict[str, Any]:
    """Return the status of a pod whose runner has ended, and to which a proxy was added that never ends."""
    runner, proxy = ended(code)["containerStatuses"][0], {"name": "istio-proxy", "state": {"running": {}}}
    return {"phase": "Running", "containerStatuses": [runner, proxy]}


OUT = (
    "Kubernetes waits for that container, which must end too: leave it out by pod.labels or pod.annotations, or add it "
    "as an init container with restartPolicy Always"
)


@pytest.mark.parametrize(("code", "how"), [(3, "Failed"), (0, "Complete")])
def test_wait_ends_with_the_runner_although_another_container_keeps_the_pod(
    kubectl: Kubectl, code: int, how: str
) -> None:
    kubectl.has(pods={"items": [lead(kubectl.folder, kept(code))]})
    why = f"the lead is Running: ended with exit code {code}, kept by istio-proxy: {OUT}"
    said = say(f"mini has ended (exit code {code}): {how}: {why}")
    assert kubectl.run("wait", "mini", "--for", "end", "--timeout", "5s") == Done(code, "", said)


def test_wait_goes_on_for_a_kept_pod_that_was_only_told_to_stop(kubectl: Kubectl) -> None:
    kubectl.has(pods={"items": [lead(kubectl.folder, kept(85))]})
    done = kubectl.run("wait", "mini", "--for", "end", "--timeout", "1s")
    assert done.code == 1
    assert (
        f"gave up after 1 s: Ending: the lead is Running: ended with exit code 85, kept by istio-proxy: {OUT}"
        in done.err
    )


def test_wait_says_how_the_work_failed(kubectl: Kubectl) -> None:
    said = "Container mini for pod lab/mini-0-x failed with exit code 7 matching FailJob rule at index 1"
    failed = job(end=("Failed", "PodFailurePolicy"))
    failed["status"]["conditions"][-1]["message"] = said
    # the broker has ended, then Kubernetes sees that, then it ends the Job
    ends = {"items": [lead(kubectl.folder, STARTS)]}
    kubectl.has(
        job_1=job(), job_2=job(), job_3=job(), job_4=job(), job=failed, pods_1={"items": [lead(kubectl.folder)]}
    )
    kubectl.has(
        pods_2={"items": [lead(kubectl.folder)]},
        pods_3=ends,
        pods_4=ends,
        pods={"items": [lead(kubectl.folder, ended(7))]},
    )
    (kubectl.folder / "refused").write_text(
        "error: cannot exec in a stopped container\nx: cannot exec into a completed pod"
    )
    (kubectl.folder / "logs").write_text("one\nno input\nminicluster: the job failed with exit code 7\n")
    assert kubectl.run("wait", "mini", "--for", "end") == Done(
        7,
        "",
        say(
            "mini: Running",
            "mini has ended (exit code 7): Failed: the work failed with exit code 7: no input",
        ),
    )
    assert kubectl.asked()[-1] == "logs mini-0-x --tail=50"
    # a user who may not read the log
    (kubectl.folder / "logs.error").write_text(FORBIDDEN.format("pods/log", "get"))
    last = "mini has ended (exit code 7): Failed: the container mini of pod mini-0-x failed with exit code 7"
    assert kubectl.run("wait", "mini", "--for", "end") == Done(7, "", say(last))


def test_wait_fails_when_the_cluster_is_deleted(kubectl: Kubectl) -> None:
    kubectl.has(job_1=job(), job=None, pods={"items": []})
    message = "mini has ended: Gone: the Job mini was deleted, or cleaned up after its end"
    assert kubectl.run("wait", "mini") == Done(1, "", say(message))


def test_wait_gives_up_after_its_timeout(kubectl: Kubectl) -> None:
    kubectl.has(job=suspended(), pods={"items": []})
    done = kubectl.run("wait", "mini", "-n", "lab", "--timeout", "1500ms")
    why = SUSPENDED.replace("` resumes", " -n lab` resumes")
    lines = (
        f"mini: Suspended: {why}",
        f"mini in namespace lab: gave up after 1.5 s: Suspended: {why}",
    )
    assert done == Done(1, "", say(*lines))


def test_wait_keeps_its_timeout_when_the_lead_does_not_answer(kubectl: Kubectl) -> None:
    kubectl.has(pods={"items": [lead(kubectl.folder, WAITS)]})
    kubectl.tool("sh", "exec sleep 30")
    begin = time.monotonic()
    assert kubectl.run("wait", "mini", "--timeout", "3s") == Done(
        1, "", say("mini in namespace default: gave up after 3 s")
    )
    assert time.monotonic() - begin < 10


def test_wait_tries_again_after_an_outage_but_not_after_a_refusal(kubectl: Kubectl) -> None:
    refused = "The connection to the server 10.0.0.1:6443 was refused"
    kubectl.has(job=job(), job_2=refused)
    assert kubectl.run("wait", "mini") == Done(0, "", say(f"{refused}: trying again for 900 s", "mini: Running"))
    kubectl.has(job_2=FORBIDDEN.format("jobs", "get"))
    (kubectl.folder / "job.count").unlink()
    message = FORBIDDEN.format("jobs", "get") + ": ask for a Role that allows it"
    assert kubectl.run("wait", "mini") == Done(1, "", say(message))


def test_each_outage_has_a_time_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    outage, kubernetes = Outage(said.append), Kubernetes()
    for now in (0.0, 899.0, 901.0):
        monkeypatch.setattr("time.monotonic", lambda now=now: now)
        if now == 901.0:
            outage.end()
        with wait._bridged(outage, kubernetes):
            raise AwayError("kubectl get: away", "away")
    monkeypatch.setattr("time.monotonic", lambda: 1802.0)
    with pytest.raises(AwayError), wait._bridged(outage, kubernetes):
        raise AwayError("kubectl get: away", "away")
    assert said == ["away: trying again for 900 s"] * 2


# logs -------------------------------------------------------------------------------------------------------------


def line(second: int, text: str) -> str:
    """Return a line of a log with its time."""
    return f"2030-01-01T12:00:{second:02}.5Z {text}\n"


def test_logs_goes_on_with_the_next_lead_and_ends_with_the_job(kubectl: Kubectl) -> None:
    folder = kubectl.folder
    first, second = lead(folder), lead(folder, name="mini-0-y", creationTimestamp="2030-01-01T11:50:00Z")
    failed = lead(folder, ended(85))
    kubectl.has(
        pods_1={"items": [first]},
        pods_2={"items": [first]},
        pods_3={"items": [first]},
        pods_4={"items": [failed]},
        pods_5={"items": [failed, {**second, "status": UNSCHEDULABLE}]},
        pods_6={"items": [failed, second]},
        pods={"items": [failed, {**second, "status": ended(3)}]},
        job=job(),
    )
    (folder / "logs.1").write_text(line(1, "one"))
    (folder / "logs.2").write_text(line(1, "one") + line(2, "two"))
    (folder / "logs.5").write_text(line(4, "next"))
    (folder / "logs").write_text(line(1, "one") + line(2, "two"))
    (folder / "logs.6").write_text(line(4, "next") + line(5, "last"))
    assert kubectl.run("logs", "mini", "-f") == Done(
        0,
        "one\ntwo\nnext\nlast\n",
        say(
            "mini: Starting: the lead's pod mini-0-x is Failed: exit code 85; Kubernetes replaces it, or ends the Job",
            "the lead was replaced: the log goes on with pod mini-0-y",
            f"mini: Starting: the lead is Pending: Unschedulable: 1 Insufficient cpu: {ROOM}",
            "mini has ended (exit code 3): Failed",
        ),
    )


def test_logs_prints_the_bytes_of_the_log_unchanged(kubectl: Kubectl) -> None:
    (kubectl.folder / "logs").write_bytes(line(1, "one").encode() + line(2, "b\0").encode() + b"Z \xff\n")
    with kubectl.start("logs", "mini", "-c", "agent", text=False) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"one\nb\0\nZ \xff\n", b"")
    assert kubectl.asked()[-1] == "logs mini-0-x --container=agent --timestamps"


def test_logs_prints_a_progress_bar_and_a_long_line_once(kubectl: Kubectl) -> None:
    """The log is read twice, and comes from a kubectl that fills the pipe of its errors."""
    bar = b"".join(b"%d%%\r" % number for number in range(101)) + b"x\r" * 20 + "\u2028\x85\f".encode() + b"\xe2\x80"
    log = line(1, "").encode().replace(b"\n", bar + b"\n") + line(2, "y" * 1_000_000).encode() + line(3, "end").encode()
    kubectl.has(pods={"items": [lead(kubectl.folder)]}, job=job(), job_4=job(end=("Complete", END)))
    (kubectl.folder / "logs").write_bytes(log)
    kubectl.tool("cat", 'case $1 in */logs) head -c 200000 /dev/zero >&2 ;; esac; exec /bin/cat "$@"')
    with kubectl.start("logs", "mini", "-f", text=False) as process:
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, bar + b"\n" + b"y" * 1_000_000 + b"\nend\n")
    assert len([words for words in kubectl.asked() if words.startswith("logs ")]) > 1


@pytest.mark.parametrize("follow", [[], ["-f"]], ids=["once", "follow"])
def test_logs_ends_when_its_reader_is_gone(kubectl: Kubectl, follow: list[str]) -> None:
    # a log in which nothing happens after its first lines
    (kubectl.folder / "logs").write_text(line(1, "one") + line(2, "two"))
    kubectl.tool("cat", '/bin/cat "$@"; case $1 in */logs) exec sleep 300 ;; esac')
    with kubectl.start("logs", "mini", *follow) as process:
        assert process.stdout.readline() == "one\n"
        process.stdout.close()
        assert process.wait(60) == 128 + signal.SIGPIPE
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (FORBIDDEN.format("pods/log", "get"), FORBIDDEN.format("pods/log", "get") + ": ask for a Role that allows it"),
        (
            "error: container nope is not valid for pod mini-0-x out of: mini",
            "there is no log: container nope is not valid for pod mini-0-x out of: mini",
        ),
    ],
    ids=["forbidden", "no container"],
)
def test_logs_reports_a_log_that_can_not_be_read(kubectl: Kubectl, said: str, message: str) -> None:
    (kubectl.folder / "logs.error").write_text(said)
    for follow in ([], ["--follow"]):
        assert kubectl.run("logs", "mini", *follow) == Done(1, "", say(message))


def test_logs_says_why_there_is_no_pod(kubectl: Kubectl) -> None:
    kubectl.has(pods={"items": []}, job=suspended())
    assert kubectl.run("logs", "mini").err.startswith("minicluster: there is no log: Suspended: the Job is suspended")
    kubectl.has(job=job(end=("Complete", END)))
    message = f"there is no log: mini has ended (exit code 0): Complete: {END}: said why"
    assert kubectl.run("logs", "mini") == Done(1, "", say(message))
