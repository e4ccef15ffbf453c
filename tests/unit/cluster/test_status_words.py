"""Plain descriptions of what Kubernetes, logs and failed requests to the lead report."""

from datetime import timedelta
from typing import Any

import pytest
from minicluster.cluster import states
from minicluster.cluster.job import ENDING, job_of_pods
from minicluster.cluster.pods import read_pods
from status_samples import CREATED, NOW, ended, job, pod, show

POLICY = "Container mini for pod lab/mini-0-x failed with exit code 7 matching FailJob rule at index 1"


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("PodFailurePolicy", POLICY, "the container mini of pod mini-0-x failed with exit code 7"),
        ("SuccessPolicy", "Matched rules at index 0", ""),
        ("CompletionsReached", "Reached expected number of succeeded pods", ""),
        (
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
            states.END_REASONS["BackoffLimitExceeded"],
        ),
        ("DeadlineExceeded", "Job was active longer than specified deadline", states.END_REASONS["DeadlineExceeded"]),
        ("Another", "said why", "Another: said why"),
        ("PodFailurePolicy", "said why", "PodFailurePolicy: said why"),
    ],
)
def test_status_describes_how_a_job_ended(reason: str, message: str, expected: str) -> None:
    assert states.of_end(reason, message) == expected


START = "minicluster: mini-0 of 2 (max 8), Flux 0.88.0\nminicluster: scheduler: Fluxion\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            START + "one\nno input\nflux-job: task(s) exited with exit code 7\n"
            "minicluster: the job failed with exit code 7\n",
            "the work failed with exit code 7: no input",
        ),
        (START + "minicluster: the job failed with exit code 7\n", "the work failed with exit code 7"),
        (
            "set up\nflux-run: ERROR: [Errno 22] Unsatisfiable request: it asks for 5 nodes of 1 core\n"
            "minicluster: the job failed with exit code 1\nmini.err[0]: y\n",
            "the work failed with exit code 1: Unsatisfiable request: it asks for 5 nodes of 1 core",
        ),
        (
            START + "x" * 300 + "\n0.123s: flux-shell[1]:  WARN: x\nmini.err[0]: y\n"
            "minicluster: the job failed with exit code 137\n"
            "minicluster: exit code 137 would mean to Kubernetes that the pod was killed: it becomes 1\n",
            f"the work failed with exit code 137 ({states.MEMORY}): " + "x" * 199 + "…",
        ),
        (
            "sh: nosuchtool: not found\nminicluster: pre.sh failed with exit code 127\n",
            "pre.sh failed with exit code 127: sh: nosuchtool: not found",
        ),
        (
            "bash: warning: setlocale: LC_ALL: cannot change locale (de_DE.UTF-8)\nflux-job: No job output found\n"
            "0.1s: flux-shell[0]: stderr: flux-shell: liblua5.3.so.0: cannot open shared object file\n"
            "<3>broker.err[0]: rc3.0: bash: warning: setlocale: LC_ALL: cannot change locale (de_DE.UTF-8)\n"
            "minicluster: the job failed with exit code 127\n",
            "the work failed with exit code 127: flux-shell: liblua5.3.so.0: cannot open shared object file",
        ),
        (
            START + "GPU 0: ok\nno GPU 1\nminicluster: mini-0: its check failed: no GPU 1\n",
            "mini-0: its check failed: no GPU 1",
        ),
        (START + "minicluster: the broker did not start, exit code 1\n", "the broker did not start, exit code 1"),
        (
            START + "broker.err[3]: rc3.0: flux modprobe rc3 Exited (rc=1) 0.1s\n"
            "Nov 25 20:21:02.780952 UTC 2026 broker.err[0]: rc1.0: sched-fluxion-resource: libboost.so: cannot open\n"
            "<3>broker.err[0]: rc1.0: flux modprobe rc1 Exited (rc=1) 1.6s\n"
            "minicluster: the broker did not start, exit code 1\n",
            "the broker did not start, exit code 1: rc1.0: sched-fluxion-resource: libboost.so: cannot open",
        ),
        (
            "flux-start: error execing broker: No such file or directory\nminicluster: the broker did not start, exit "
            "code 1\n",
            "the broker did not start, exit code 1: flux-start: error execing broker: No such file or directory",
        ),
        *(
            (f"minicluster: {said}\n", said)
            for said in (
                "flux-core 0.49.0 is too old: set flux.container.image to a view that has 0.54 or later",
                "munged does not start as user 5: see the lines above",
                "this pod is dev-h-0 …, and its configuration is that of h-0: names can't change after the rendering",
                "logs: /data/out can't be written by user 5: name a folder on a volume where it may write",
            )
        ),
        (START + "hello\n", ""),
        ("", ""),
    ],
)
def test_status_takes_the_reason_of_a_failure_from_the_log(log: str, expected: str) -> None:
    assert states.of_log(log.splitlines()) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("sh: 1: /mnt/flux/bin/flux: not found", "Starting"),
        ("cat: /mnt/flux/minicluster/agent.json: No such file or directory", "Starting"),
        ("OSError: [Errno 38] Function not implemented", "Starting"),
        ("cannot exec into a container in a completed pod; current phase is Succeeded", "Ending"),
        ('container not found ("mini")', "Ending"),
        ("no answer within 20 s", ""),
    ],
)
def test_status_tells_from_the_exec_error_whether_the_lead_starts_or_ends(message: str, expected: str) -> None:
    assert states.of_silence(message) == expected


def failed_lead(count: str, ago: float) -> dict[str, Any]:
    """Return a lead whose last failure was ``ago`` seconds ago."""
    found = ended(137)
    time = (NOW - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    found["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = time
    item = pod(0, found)
    item["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = count
    return item


@pytest.mark.parametrize(
    ("count", "ago", "expected"),
    [
        ("0", 4, "failure 1, next try in about 6 s"),
        ("3", 20, "failure 4, next try in about 60 s"),
        ("30", 0, "failure 31, next try in about 600 s"),
    ],
)
def test_status_says_when_kubernetes_retries_a_failed_lead(count: str, ago: float, expected: str) -> None:
    shown = show(job(), [failed_lead(count, ago)], None)
    assert shown["why"] == f"the lead's pod mini-0-x is Failed: exit code 137: {expected}"
    over = show(job(), [failed_lead("0", 11)], None)
    assert over["why"] == "the lead's pod mini-0-x is Failed: exit code 137; Kubernetes replaces it, or ends the Job"


def test_status_says_when_kubernetes_retries_an_evicted_lead_whose_container_it_lost() -> None:
    item = failed_lead("0", 4)
    terminated = item["status"]["containerStatuses"][0]["state"]["terminated"]
    time, terminated["finishedAt"] = terminated["finishedAt"], None
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": time}
    item["status"] |= {"reason": "Evicted", "message": "the node is full", "conditions": [ready]}
    shown = show(job(), [item], None)
    why = "the lead's pod mini-0-x is Failed: Evicted: the node is full"
    assert shown["why"].startswith(why)
    assert shown["why"].endswith(": failure 1, next try in about 6 s")


def test_status_of_a_cluster_that_is_being_uninstalled_is_ending() -> None:
    gone = {**job(), "metadata": {**job()["metadata"], "deletionTimestamp": CREATED}}
    shown = show(gone, [pod(0, deletionTimestamp=CREATED)], None)
    assert (shown["state"], shown["why"]) == ("Ending", "the Job was deleted: its pods end within their grace period")
    # the Job itself is gone first
    found = job_of_pods(read_pods({"items": [pod(index, deletionTimestamp=CREATED) for index in (0, 1)]}))
    assert found
    assert (found.end, found.size, found.max_size) == (ENDING, 2, None)
    assert job_of_pods(read_pods({"items": [pod(0), pod(1, deletionTimestamp=CREATED)]})) is None


@pytest.mark.parametrize(
    ("reason", "code", "expected"),
    [
        ("Error", 3, "exit code 3"),
        ("OOMKilled", 137, "OOMKilled, exit code 137"),
        ("OOMKilled", 85, "exit code 85, a process of it was killed for want of memory"),
        ("OOMKilled", 3, "exit code 3, a process of it was killed for want of memory"),
        ("ContainerCannotRun", 127, "ContainerCannotRun, exit code 127"),
    ],
)
def test_only_a_container_that_the_kernel_ended_needs_more_memory(reason: str, code: int, expected: str) -> None:
    found = read_pods({"items": [pod(0, ended(code, reason))]})[0]
    assert found.reason == expected
    assert found.way_out.startswith("it needs more memory") == (code == 137)
