"""What `minicluster why` says of a job and of a MiniCluster."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_kube import FakeKube
from live_kubectl import Kubectl, lead
from minicluster.cluster.pods import read_pods
from minicluster.status import why
from minicluster.status.why import READY, Reason, job_in_words, pods_took, request_in_words
from status_samples import RUNNING, ended, explained, job, pod

JOB = {
    "id": "f1",
    "name": "lmp",
    "state": "INACTIVE",
    "result": "FAILED",
    "exit_code": 1,
    "exception": None,
    "nodes": "mini-[0-1]",
    "t_submit": 100.0,
    "t_run": 160.0,
    "t_cleanup": 172.0,
    "t_inactive": 173.0,
}
WAITS = {"state": "SCHED", "result": None, "exit_code": None, "nodes": None, "t_run": None}
NODES = "waits for nodes: it asks for 3 nodes of 4 cores, and 2 are up"
FLUX = "minicluster flux mini --"


def known(job: dict[str, Any], **more: Any) -> dict[str, Any]:
    return explained({**JOB, **job}, **{"now": 200.0, **more})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            known(WAITS, waits=NODES, needs={"": 3}),
            [
                ("job f1 (lmp) waits for 1m40s for nodes: it asks for 3 nodes of 4 cores, and 2 are up", ""),
                ("it can run once the size is 3", "minicluster scale mini 3"),
            ],
        ),
        (
            known(WAITS, waits=NODES, needs={"gpu": 1}),
            [
                ("job f1 (lmp) waits for 1m40s for nodes: it asks for 3 nodes of 4 cores, and 2 are up", ""),
                ("it can run once the size of gpu is 1", "minicluster scale mini gpu=1"),
            ],
        ),
        (
            known(WAITS, waits=NODES, needs={"": 2}),
            [
                ("job f1 (lmp) waits for 1m40s for nodes: it asks for 3 nodes of 4 cores, and 2 are up", ""),
                ("its nodes have yet to come", "minicluster status mini"),
            ],
        ),
        (
            known(WAITS, waits="can never run: it asks for 9 nodes of 1 core, and all nodes have room for 4"),
            [
                ("job f1 (lmp) can never run: it asks for 9 nodes of 1 core, and all nodes have room for 4", ""),
                ("nothing that comes can change that", f"{FLUX} cancel f1"),
            ],
        ),
        (
            known(WAITS, waits="is held: `flux job urgency ID 16` releases it"),
            [("job f1 (lmp) is held", f"{FLUX} job urgency f1 default")],
        ),
        (
            known({**WAITS, "state": "DEPEND"}, waits="waits for after-success=f2"),
            [("job f1 (lmp) waits for 1m40s for after-success=f2", "")],
        ),
        *(
            (
                known(WAITS, waits="waits for resources that other jobs have", starts={"at": 500.5, "after": after}),
                [
                    ("job f1 (lmp) waits for 1m40s for resources that other jobs have", ""),
                    (f"it starts in about 5m, {when}", ""),
                ],
            )
            for after, when in (
                ("f0", "when the time limit of job f0 is over"),
                ("", "by the time limits of jobs before it"),
            )
        ),
        *(
            (
                known(WAITS, waits="waits for the scheduler", starts={"at": None, "after": after}),
                [
                    ("job f1 (lmp) waits for 1m40s for the scheduler", ""),
                    (f"when it starts is not known: {before}", ""),
                ],
            )
            for after, before in (("f0", "job f0 before it has no time limit"), ("", "a job before it waits for nodes"))
        ),
        (
            # of a burst, which no size brings
            known(WAITS, waits=NODES, starts={"at": None, "after": ""}),
            [("job f1 (lmp) waits for 1m40s for nodes: it asks for 3 nodes of 4 cores, and 2 are up", "")],
        ),
        (
            known(WAITS, waits=NODES, needs={"": 3}, grows={"": 4}, pods_took=31.5),
            [
                ("job f1 (lmp) waits for 1m40s for nodes: it asks for 3 nodes of 4 cores, and 2 are up", ""),
                ("autoscaling makes the size 3 first, and new pods took 31s lately", ""),
            ],
        ),
        (known(WAITS), [("job f1 (lmp) waits for 1m40s: Flux has yet to look at it", "")]),
        (known({"state": "RUN", "result": None}), [("job f1 (lmp) runs on mini-[0-1] for 40s", "")]),
        (
            known({"state": "RUN", "result": None}, warned="kept less than 0.05 of its core busy for 30 min"),
            [
                ("job f1 (lmp) runs on mini-[0-1] for 40s", ""),
                ("it kept less than 0.05 of its core busy for 30 min", f"{FLUX} cancel f1"),
            ],
        ),
        (
            known({"state": "RUN", "result": None}, quiet_since=-100.0),
            [("job f1 (lmp) runs on mini-[0-1] for 40s", "")],
        ),
        (
            known({"state": "RUN", "result": None}, quiet_since=-520.0),
            [
                ("job f1 (lmp) runs on mini-[0-1] for 40s", ""),
                (
                    "it has printed nothing for 12m and has no time limit: if its work is done, it hangs in its end, "
                    "as programs with Debian's MPICH may",
                    f"{FLUX} cancel f1",
                ),
            ],
        ),
        (known({"result": "COMPLETED", "exit_code": 0}), [("job f1 (lmp) completed after 12s on mini-[0-1]", "")]),
        (
            known({}, said=["no such file", "bye"], again="f7"),
            [
                ("job f1 (lmp) failed with exit code 1 after 12s on mini-[0-1]", ""),
                ("| no such file", ""),
                ("| bye", ""),
                ("it runs again as job f7", "minicluster why mini f7"),
            ],
        ),
        (
            known({"exit_code": 137}),
            [
                (
                    "job f1 (lmp) failed with exit code 137 (killed, most often for want of memory: raise "
                    "resources.limits.memory) after 12s on mini-[0-1]",
                    "",
                )
            ],
        ),
        (
            known({"exit_code": 143, "exception": "exec: node failure on mini-1"}),
            [("job f1 (lmp) failed after 12s on mini-[0-1]: node failure on mini-1", "")],
        ),
        (
            known({"exit_code": 137, "exception": "memory: took 1.6 GiB of 2 GiB on mini-1"}),
            [("job f1 (lmp) failed after 12s on mini-[0-1]: took 1.6 GiB of 2 GiB on mini-1", "")],
        ),
        (
            known({"result": "CANCELED", "exit_code": None, "t_run": None, "exception": "cancel: its node left"}),
            [("job f1 (lmp) was cancelled: its node left", "")],
        ),
        (
            known({"result": "TIMEOUT", "exit_code": 142, "exception": "timeout: resource allocation expired"}),
            [("job f1 (lmp) ran into its time limit after 12s on mini-[0-1]: resource allocation expired", "")],
        ),
    ],
)
def test_a_job_has_its_reason_and_the_way_out(found: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert [*job_in_words("mini", found, {"": 2})] == [Reason(*each) for each in expected]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"refused": "it asks for 9"}, [("it can never run: it asks for 9", "")]),
        ({"waits": READY, "starts": {"at": 200.1, "after": ""}}, [("it would run now", "")]),
        ({"waits": READY}, [("its nodes are free, and jobs wait that are before it", "")]),
        (
            {"waits": READY, "starts": {"at": 500.0, "after": ""}},
            [("it would start in about 5m, by the time limits of jobs before it", "")],
        ),
        (
            {"waits": "waits for resources that other jobs have", "starts": {"at": 500.0, "after": "f0"}},
            [
                ("it would wait for resources that other jobs have", ""),
                ("it would start in about 5m, when the time limit of job f0 is over", ""),
            ],
        ),
        ({"waits": "the queue is stopped (why)"}, [("the queue is stopped (why)", "")]),
        (
            {"waits": NODES, "needs": {"": 3, "gpu": 2}, "grows": {"gpu": 2}},
            [
                ("it would wait for nodes: it asks for 3 nodes of 4 cores, and 2 are up", ""),
                ("it could run once the size is 3", "minicluster scale mini 3"),
                ("autoscaling makes the size of gpu 2 first", ""),
            ],
        ),
    ],
)
def test_what_would_become_of_a_job_is_in_words(told: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    whole = {"refused": "", "waits": "", "needs": {}, "grows": {}, "starts": None, "now": 200.0, **told}
    assert [*request_in_words("mini", whole, {"": 2})] == [Reason(*each) for each in expected]


@pytest.mark.parametrize(("groups", "who"), [([], "mini-3"), ([{"name": "gpu"}], "rank 3")])
def test_a_node_of_a_group_has_no_name_of_the_clusters_own(
    monkeypatch: pytest.MonkeyPatch, groups: list[Any], who: str
) -> None:
    report: dict[str, Any] = dict.fromkeys(("drained", "containers", "problems", "waiting"), ())
    lacks = {"missing": [{"ranks": "3", "reason": "no pod"}], "groups": groups, "nodes": {"up": 3}}
    shown = {**report, **lacks, "name": "mini", "state": "Running", "why": ""}
    monkeypatch.setattr(why, "status_of", lambda *_: shown)
    assert [*why.of_cluster(FakeKube(), "mini")][1:] == [Reason(f"{who} is missing: no pod")]


def test_new_pods_take_as_long_as_the_last_ones_did() -> None:
    created = datetime(2030, 1, 1, tzinfo=UTC)
    pods = [read_pods({"items": [pod(0, RUNNING)]})[0]] * 9
    pods = [
        replace(
            each,
            created=created + timedelta(days=n),
            started=created + timedelta(days=n, seconds=10 * n),
            came_back=None,
        )
        for n, each in enumerate(pods)
    ]
    started = SimpleNamespace(pods=dict(enumerate(pods)), groups=[])
    # not the first one
    assert pods_took(started) == 45.0  # type: ignore[arg-type]
    assert pods_took(SimpleNamespace(pods={}, groups=[])) is None  # type: ignore[arg-type]


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path / "home"))
    return Kubectl(tmp_path)


def answers(kubectl: Kubectl, found: object) -> None:
    kubectl.flux(f"cat <<'END'\n{json.dumps(found)}\nEND\n")


def test_the_command_asks_the_lead_about_a_job_and_shows_hostile_text_as_text(kubectl: Kubectl) -> None:
    answers(kubectl, known({"name": "a\x1b[31m\n\u202e"}, said=["[bold]\x07x"]))
    said = kubectl.run("why", "mini", "f1")
    where = "after 12s on mini-[0-1]"
    assert (said.code, said.err) == (0, "")
    assert said.out == f"job f1 (a\\x1b[31m \\u202e) failed with exit code 1 {where}\n| [bold]\\x07x\n"


@pytest.mark.parametrize(
    ("found", "error"),
    [
        ({"error": "no id"}, "'f1;ls' is not a job's id: give one that `minicluster jobs mini` shows"),
        ({"job": {}}, "mini has no job f1;ls: `minicluster jobs mini` lists them"),
    ],
)
def test_an_unknown_job_is_refused_by_name(kubectl: Kubectl, found: object, error: str) -> None:
    answers(kubectl, found)
    said = kubectl.run("why", "mini", "f1;ls")
    assert (said.code, said.out, said.err) == (1, "", f"minicluster: {error}\n")


def test_options_of_a_job_go_to_the_lead_as_words(kubectl: Kubectl) -> None:
    kubectl.flux("""shift 3; printf '{"error": "%s"}' "$*"\n""")
    said = kubectl.run("why", "mini", "--for", "-N4 --job-name='a $(b)' -t 1h")
    error = """-N4 '--job-name=a $(b)' -t 1h: -N4 --job-name=a $(b) -t 1h"""
    assert (said.code, said.out, said.err) == (1, "", f"minicluster: {error}\n")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["f1", "--for", "-n1"],
            "--for: it is about a job that is not submitted, and f1 is one that is: give one of both",
        ),
        (["--for", "-n '1"], "--for: \"-n '1\" can't be split into words: No closing quotation"),
    ],
)
def test_options_that_make_no_sense_are_refused(kubectl: Kubectl, words: list[str], error: str) -> None:
    said = kubectl.run("why", "mini", *words)
    assert (said.code, said.out, said.err) == (2, "", f"minicluster: {error}\n")


def test_why_names_what_the_image_lacks_before_kubernetes_has_ended_the_job(tmp_path: Path) -> None:
    kubectl = Kubectl(tmp_path)
    state = {**ended(127), "phase": "Running"}
    kubectl.has(job=job(), pods={"items": [lead(tmp_path, state)]})
    said = "there is no cp in this image (PATH /opt:/usr/bin:/bin): use one that has the usual tools, or busybox"
    (tmp_path / "logs").write_text(f"minicluster: {said}\n")
    done = kubectl.run("why", "mini")
    assert done.out.splitlines()[0] == f"mini is Ending: {said}: Kubernetes ends the Job"
