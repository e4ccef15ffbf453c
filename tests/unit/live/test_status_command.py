"""``minicluster status``: what it asks of kubectl, its output and its errors."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import status_samples as samples
from fake_kubectl import FORBIDDEN, IDLE, NO_EXEC, NONE, REFUSED, Kubectl, asked, make_kubectl
from minicluster.commands.status import INTERVAL_SECONDS
from minicluster.kube import kubectl as client
from minicluster.lead import ask
from status_samples import SETTINGS, STARTS, UNSCHEDULABLE, flux, job, pod, show

AWAY = "jobs go on without the API server: try again, or check KUBECONFIG and --context"
NEEDS = "this needs `get` and `list` of pods and `create` of pods/exec: ask for a Role that has them"


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    return make_kubectl(tmp_path, monkeypatch)


def test_status_asks_for_the_pods_the_job_and_the_lead(kubectl: Kubectl, tmp_path: Path) -> None:
    done = kubectl("mini", "-n", "lab", "--context", "a b")
    assert (done.exit_code, done.stdout, done.stderr) == (0, IDLE, "")
    given = "--context=a b --namespace=lab"
    assert asked(tmp_path) == [
        f"{given} get pods --selector=app.kubernetes.io/instance=mini,app.kubernetes.io/component=broker "
        "--ignore-not-found --output=json --request-timeout=10s",
        f"{given} get job mini --ignore-not-found --output=json --request-timeout=10s",
        f"{given} exec mini-0-x --container=mini --stdin -- /bin/sh -c {ask.QUESTION} {ask.BOOT}",
        f"{given} get deployment mini-services --ignore-not-found --output=json --request-timeout=10s",
    ]


def test_status_without_options_leaves_context_and_namespace_to_kubectl(kubectl: Kubectl, tmp_path: Path) -> None:
    assert kubectl("mini").stdout == IDLE
    assert [line.split()[0] for line in asked(tmp_path)] == ["get", "get", "exec", "get"]


def test_status_prints_its_document_as_json(kubectl: Kubectl) -> None:
    done = kubectl("mini", "-o", "json")
    found = json.loads(done.stdout)
    assert found.pop("age") // 3600 == 76
    expected = show(*samples.IDLE)
    del expected["age"]
    assert (done.exit_code, found) == (0, expected)


@pytest.mark.parametrize("unreadable", [FORBIDDEN, None], ids=["forbidden", "no Job"])
def test_status_works_for_a_user_who_may_only_see_pods_and_exec(kubectl: Kubectl, unreadable: str | None) -> None:
    expected = IDLE.replace("at most 8", "at most 8 (counted by its pods: jobs can't be read)")
    done = kubectl("mini", job=unreadable)
    assert (done.exit_code, done.stdout, done.stderr) == (0, expected, "")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Unable to connect to Flux: no socket\ncommand terminated with exit code 1", "connect to Flux: no socket)"),
        ("command terminated with exit code 137", "(exit code 1)"),
        ({}, "it printed no JSON"),
        ([{}], "it printed no JSON"),
    ],
)
def test_status_of_a_lead_that_does_not_answer_is_unknown(kubectl: Kubectl, said: Any, shown: str) -> None:
    done = kubectl("mini", exec=said)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "State        Unknown: the lead's broker does not answer (" in done.stdout
    assert shown in " ".join(done.stdout.split())
    assert done.stdout.endswith("\nPods         0-3: Running\n")


def test_status_of_a_lead_whose_container_has_ended_is_ending(kubectl: Kubectl) -> None:
    done = kubectl("mini", exec='error: unable to upgrade connection: container not found ("mini")')
    assert "State        Ending: the lead's container has ended, and Kubernetes has yet to\n" in done.stdout


def test_status_asks_no_lead_when_its_pod_is_missing(kubectl: Kubectl, tmp_path: Path) -> None:
    done = kubectl("mini", pods={"items": []})
    assert "the lead has no pod" in done.stdout
    kinds = ("pods", "job", "events", "deployment")
    assert [line.split()[0:2] for line in asked(tmp_path)] == [["get", kind] for kind in kinds]


def renamed(name: str, label: str) -> dict[str, Any]:
    """Return the Job mini, whose pods have another name in their labels."""
    found = job()
    found["metadata"]["name"] = name
    found["spec"]["template"] = {"metadata": {"labels": {"app.kubernetes.io/instance": label}}}
    return found


@pytest.mark.parametrize("name", ["dev-mini", "mini-v2"])
def test_status_says_that_the_job_was_renamed(kubectl: Kubectl, tmp_path: Path, name: str) -> None:
    done = kubectl(name, "-o", "json", job=renamed(name, "mini"))
    found = json.loads(done.stdout)
    why = (
        f"its Job is {name}, and its configuration is that of mini: names can't change after the rendering; set "
        f"nameOverride to {name} in place of a namePrefix or nameSuffix"
    )
    assert (found["state"], found["why"], found["pods"]) == ("Starting", why, [{"ranks": "0-3", "reason": "Running"}])
    failed = renamed(name, "mini") | {"status": job(end=("Failed", "PodFailurePolicy"))["status"]}
    found = json.loads(kubectl(name, "-o", "json", job=failed).stdout)
    assert (found["state"], found["why"]) == ("Failed", why)
    selectors = [line for line in asked(tmp_path) if "instance=mini,app.kubernetes.io/component=broker" in line]
    assert len(selectors) == 2


def test_status_finds_pods_by_a_label_of_the_users_own(kubectl: Kubectl) -> None:
    done = kubectl("mini", job=renamed("mini", "lab"))
    assert done.stdout == IDLE.replace("3d4h", "0s")


QUOTA = 'pods "mini-3-x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3'


def test_status_says_why_a_worker_has_no_pod(kubectl: Kubectl) -> None:
    of_job = {"involvedObject": {"kind": "Job", "name": "mini"}}
    event = {"reason": "FailedCreate", "message": QUOTA, "lastTimestamp": "2030-01-01T00:00:00Z", **of_job}
    pods = {"items": [pod(index) for index in range(3)]}
    answers = {"pods": pods, "exec": [SETTINGS, flux(online="0-2")], "events": {"items": [event]}}
    shown = json.loads(kubectl("mini", "-o", "json", **answers).stdout)
    why = f"no pod: {QUOTA}: lower resources or size, or ask for a larger quota"
    assert shown["missing"] == [{"ranks": "3", "reason": why}]
    # before the quorum, it is what the cluster waits for
    starts = {"items": [pod(0, STARTS), pod(1), pod(2)]}
    shown = json.loads(kubectl("mini", "-o", "json", **{**answers, "pods": starts}).stdout)
    assert (shown["state"], shown["why"]) == (
        "Starting",
        f"waits for the quorum, 3 of 4 nodes are up: 3 has {why}",
    )


def test_status_says_why_the_services_have_no_pod(kubectl: Kubectl) -> None:
    denied = {"type": "ReplicaFailure", "status": "True", "message": "pods need the label team"}
    services = {"status": {"conditions": [{"type": "Progressing", "status": "True"}, denied]}}
    problem = "the services have no pod: pods need the label team"
    for answers in ({}, {"pods": {"items": [pod(0, UNSCHEDULABLE)]}}):
        shown = json.loads(kubectl("mini", "-o", "json", deployment=services, **answers).stdout)
        assert shown["problems"] == [problem]
        assert f"Problem      {problem}" in kubectl("mini", deployment=services, **answers).stdout
    denied["status"] = "False"
    assert json.loads(kubectl("mini", "-o", "json", deployment=services).stdout)["problems"] == []


ERRORS: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "no release": (
        ["mini", "-n", "lab"],
        NONE,
        "there is no MiniCluster mini in namespace lab: see `minicluster list -A` and give its -n",
    ),
    "no namespace": (
        ["mini", "-n", "lab"],
        {**NONE, "namespace": None},
        "there is no namespace lab: `minicluster list -A` shows MiniClusters",
    ),
    "no namespaces for me": (
        ["mini", "-n", "lab"],
        {**NONE, "namespace": FORBIDDEN.replace("jobs", "namespaces")},
        "there is no MiniCluster mini in namespace lab: see `minicluster list -A` and give its -n",
    ),
    "no release here": (
        ["mini"],
        NONE,
        "there is no MiniCluster mini in namespace default: see `minicluster list -A` and give its -n",
    ),
    "no name": (["a,b"], {}, "'a,b' is not a MiniCluster's name: give the release's name, of a-z, 0-9 and -"),
    "no pods for me": (
        ["mini"],
        {"pods": FORBIDDEN.replace("jobs", "pods")},
        f"{FORBIDDEN.replace('jobs', 'pods')}: {NEEDS}",
    ),
    "no exec for me": (["mini"], {"exec": NO_EXEC}, f"{NO_EXEC.removeprefix('error: ')}: {NEEDS}"),
    "no server": (
        ["mini"],
        {"pods": REFUSED},
        f"{REFUSED.splitlines()[1]}: {AWAY}",
    ),
    "no server any more": (
        ["mini"],
        {"job": REFUSED},
        f"{REFUSED.splitlines()[1]}: {AWAY}",
    ),
    "no context": (
        ["mini", "--context=x"],
        {"pods": 'error: context "x" does not exist'},
        'context "x" does not exist: check KUBECONFIG, --context and --namespace',
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_a_status_error_is_one_line(kubectl: Kubectl, case: str) -> None:
    words, answers, message = ERRORS[case]
    for watch in ([], ["--watch"]):
        done = kubectl(*words, *watch, **answers)
        assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"minicluster: {message}\n")


def test_status_without_kubectl_says_how_to_install_it(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    done = kubectl("mini")
    message = "there is no kubectl in PATH: install it, https://kubernetes.io/docs/tasks/tools"
    assert (done.exit_code, done.stderr) == (1, f"minicluster: {message}\n")


@pytest.mark.parametrize(("name", "state"), [("pods", None), ("exec", "Unknown")])
def test_status_gives_up_on_a_kubectl_that_hangs(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, state: str | None
) -> None:
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.3)
    monkeypatch.setitem(ask.QUESTIONS, "status", ask.QUESTIONS["status"]._replace(seconds=0.3))
    sleep = shutil.which("sleep")
    fake = (
        (tmp_path / "kubectl").read_text().replace('. "$folder', f'[ $name != {name} ] || exec {sleep} 60\n. "$folder')
    )
    (tmp_path / "kubectl").write_text(fake)
    done = kubectl("mini")
    assert "no answer within 0.3 s" in " ".join(done.output.split())
    assert done.exit_code == (0 if state else 1)


def test_status_watch_shows_the_table_again_until_ctrl_c(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    wait = time.sleep

    def sleep(seconds: float) -> None:
        if seconds != INTERVAL_SECONDS:  # not the command's
            wait(seconds)
            return
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    # Kubernetes is away at the second request
    done = kubectl("mini", "-w", pods_2=REFUSED)
    assert (done.exit_code, done.stdout, len(slept)) == (0, IDLE * 2, 3)
    assert done.stderr == f"minicluster: {ERRORS['no server'][2]}\n"
