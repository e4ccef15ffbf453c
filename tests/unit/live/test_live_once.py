"""``minicluster run``, with stand-ins of kubectl and Helm."""

import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forks import Forked
from live_kubectl import AWAY, FORBIDDEN, KUBECTL, Kubectl, lead, say
from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import read_job
from minicluster.cluster.pods import GroupNodes, read_pod, read_pods
from minicluster.errors import StateError
from minicluster.waiting.wait import StartWatch
from screens import look
from status_samples import RUNNING, STARTS, ended, job, pod, waiting

from tools.clients import Done, until

#: Helm notes its words; it lists the release from its install to its removal
HELM = """folder=${0%/*}
[ "$1" != version ] || { echo v4.3.1; exit; }
printf '%s\\n' "$2" >>"$folder/helm.asked"
case $2 in
install) touch "$folder/release"; [ ! -e "$folder/refusal" ] || { cat "$folder/refusal" >&2; exit 1; } ;;
list) [ ! -e "$folder/release" ] || echo mini ;;
uninstall) [ ! -e "$folder/stuck" ] || { echo 'Error: not now' >&2; exit 1; }
  [ ! -e "$folder/slow" ] || exec sleep 60
  rm "$folder/release"
  [ ! -e "$folder/gone" ] || { echo 'Error: release: not found' >&2; exit 1; } ;;
esac"""
RUN = ("run", "--name", "mini", "--namespace", "lab")
WORK = ("--", "work")
INSTALLED = "installed mini in namespace lab"
WAY_OUT = "`helm uninstall mini -n lab` removes it"
MOUNT = 'MountVolume.SetUp failed for volume "munge" : secret "munge-key" not found'
CREATE = "create it in this namespace, or correct the value that names it: the pod then starts by itself"
STAMP = "2030-01-01T12:00:01.5Z"


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    kubectl = Kubectl(tmp_path)
    kubectl.tool("helm", HELM)
    return kubectl


def asked_helm(kubectl: Kubectl) -> list[str]:
    return (kubectl.folder / "helm.asked").read_text().splitlines()


def ends(kubectl: Kubectl, code: int) -> dict[str, Any]:
    """Return the answers of a cluster that is ready at first; then its work ends, which Kubernetes has yet to see."""
    ready, over = {"items": [lead(kubectl.folder)]}, {"items": [lead(kubectl.folder, ended(code))]}
    return {**{f"pods_{n}": ready for n in (1, 2, 3)}, "pods": over}


@pytest.mark.parametrize("code", [0, 7])
def test_run_prints_the_log_and_ends_with_the_code_of_the_work(kubectl: Kubectl, code: int) -> None:
    kubectl.has(**ends(kubectl, code))
    (kubectl.folder / "logs").write_text(f"{STAMP} out\n")
    lines = (INSTALLED, f"mini has ended (exit code {code}): {'Failed' if code else 'Complete'}")
    assert kubectl.run(*RUN, *WORK) == Done(code, "out\n", say(*lines))
    assert asked_helm(kubectl) == ["install", "list", "uninstall"]


def test_the_first_line_is_there_before_kubernetes_calls_the_lead_ready(kubectl: Kubectl) -> None:
    kubectl.has(pods={"items": [lead(kubectl.folder, STARTS)]})
    note = "failed to try resolving symlinks in path"
    (kubectl.folder / "logs").write_text(f"{STAMP} out\n")
    (kubectl.folder / "logs.2").write_text(f"{note}\n")
    with kubectl.start(*RUN, *WORK) as process:
        assert process.stdout.readline() == "out\n"
        kubectl.has(pods={"items": [lead(kubectl.folder, ended(7))]})
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (7, "")
    # what the kubelet says in place of a log is not the output of the work
    assert err.splitlines()[-2:] == say(note, "mini has ended (exit code 7): Failed").splitlines()


def test_run_under_a_name_of_its_own_waits_for_no_pod_when_the_work_has_ended(kubectl: Kubectl) -> None:
    kubectl.tool("helm", f'{HELM}\nprintf \'%s\\n\' "$*" >>"$folder/words"')
    kubectl.has(**ends(kubectl, 7))
    done = kubectl.run("run", "--namespace", "lab", *WORK)
    name = done.err.split()[2]
    assert (done.code, name[:4]) == (7, "run-")
    assert asked_helm(kubectl) == ["install", "uninstall"]
    last = (kubectl.folder / "words").read_text().splitlines()[-1]
    assert last == f"--namespace=lab uninstall {name} --cascade foreground"


def test_run_removes_its_release_where_it_installed_it(kubectl: Kubectl) -> None:
    # another context becomes the current one when it was asked for
    config = """{"contexts": [{"name": "first", "context": {"namespace": "lab"}}]}"""
    kubectl.tool("kubectl", f"case $* in *'config view'*) echo '{config}'; exit ;; esac\n{KUBECTL}")
    kubectl.tool("helm", f'{HELM.replace("$2", "$3")}\nprintf \'%s\\n\' "$*" >>"$folder/words"')
    kubectl.has(**ends(kubectl, 7))
    assert kubectl.run("run", "--name", "mini", *WORK).code == 7
    begins = {words.split(" mini ")[0] for words in (kubectl.folder / "words").read_text().splitlines()}
    where = "--kube-context=first --namespace=lab"
    assert {f"{where} install", f"{where} uninstall"} <= begins


def test_run_on_a_terminal_leaves_the_screen_to_the_work_between_its_waits(kubectl: Kubectl) -> None:
    kubectl.has(**ends(kubectl, 7))
    (kubectl.folder / "logs").write_text(f"{STAMP} out\n")
    kubectl.tool("helm", HELM.replace("case $2 in", "sleep 0.5; case $2 in"))
    seen = look([*RUN, *WORK], kubectl.environment, start=Forked)
    installed, end = f"minicluster: {INSTALLED}", "minicluster: mini has ended (exit code 7): Failed"
    assert (seen.code, seen.last) == (7, [installed, "out", end])
    assert seen.colours["red"] == end.removeprefix("minicluster: ")
    # the screens with a line that lives, without its clock
    lives = [screen for screen in seen.screens if screen and " 0:0" in screen[-1]]
    assert list(dict.fromkeys((*screen[:-1], screen[-1].rpartition(" ")[0]) for screen in lives)) == [
        ("installing mini",),
        (installed, "mini: Running"),
        (installed, "out", end, "removing mini"),
    ]


def test_run_leaves_work_that_it_can_not_follow_any_more(kubectl: Kubectl) -> None:
    ready = {"items": [lead(kubectl.folder)]}
    kubectl.has(pods_1=ready, pods_2=ready, pods=AWAY)
    kubectl.bears_no_outage()
    why = f"{AWAY}: mini goes on in namespace lab: `minicluster logs mini -f -n lab` shows its log, {WAY_OUT}"
    done = kubectl.run(*RUN, *WORK)
    assert (done.code, done.err.splitlines()[-2:]) == (1, say(f"{AWAY}: trying again for 0 s", why).splitlines())
    assert asked_helm(kubectl) == ["install"]


def test_run_without_a_log_still_ends_with_the_code_of_the_work(kubectl: Kubectl) -> None:
    kubectl.has(**ends(kubectl, 7))
    refusal = FORBIDDEN.format("pods/log", "get")
    (kubectl.folder / "logs.error").write_text(refusal)
    done = kubectl.run(*RUN, "--keep", *WORK)
    assert (done.code, done.out) == (7, "")
    assert done.err.splitlines()[1:] == [
        f"minicluster: {refusal}: ask for a Role that allows it",
        "minicluster: mini has ended (exit code 7): Failed",
        f"minicluster: mini stays: {WAY_OUT}",
    ]
    assert (kubectl.folder / "release").exists()


def test_run_removes_what_a_failed_install_left(kubectl: Kubectl) -> None:
    (kubectl.folder / "refusal").write_text("Error: INSTALLATION FAILED: no quota\n")
    assert kubectl.run(*RUN, *WORK) == Done(1, "", say("helm install mini: INSTALLATION FAILED: no quota"))
    assert not (kubectl.folder / "release").exists()


def test_a_removal_that_fails_leaves_the_exit_code_of_the_work(kubectl: Kubectl) -> None:
    kubectl.has(**ends(kubectl, 7))
    (kubectl.folder / "stuck").touch()
    done = kubectl.run(*RUN, *WORK)
    last = f"mini is left in namespace lab: helm uninstall mini: not now: {WAY_OUT}"
    assert (done.code, done.err.splitlines()[-1]) == (7, f"minicluster: {last}")


def test_a_release_that_someone_else_removes_at_the_same_time_is_not_called_left(kubectl: Kubectl) -> None:
    kubectl.has(**ends(kubectl, 7))
    (kubectl.folder / "gone").touch()
    last = "mini has ended (exit code 7): Failed"
    assert kubectl.run(*RUN, *WORK) == Done(7, "", say(INSTALLED, last))


def test_the_timeout_ends_a_log_that_says_nothing(kubectl: Kubectl) -> None:
    kubectl.tool("cat", '/bin/cat "$@"; case $1 in */logs) exec sleep 300 ;; esac')
    (kubectl.folder / "logs").write_text(f"{STAMP} out\n")
    kubectl.flux('echo "$@" >/dev/stderr; exit 1')
    begin = time.monotonic()
    assert kubectl.run(*RUN, "--timeout", "3s", *WORK) == Done(
        1, "out\n", say(INSTALLED, "removing mini", "mini in namespace lab: gave up after 3 s")
    )
    assert time.monotonic() - begin < 20
    assert not (kubectl.folder / "release").exists()


@pytest.mark.parametrize(
    ("number", "state"),
    # of the last, Kubernetes has yet to see that it is ready
    [(signal.SIGINT, RUNNING), (signal.SIGTERM, RUNNING), (signal.SIGHUP, RUNNING), (signal.SIGINT, STARTS)],
)
def test_a_signal_cancels_the_work_and_removes_the_release(
    kubectl: Kubectl, number: int, state: dict[str, Any]
) -> None:
    kubectl.has(pods={"items": [lead(kubectl.folder, state)]})
    kubectl.tool("cat", '/bin/cat "$@"; case $1 in */logs) exec sleep 300 ;; esac')
    (kubectl.folder / "logs").write_text(f"{STAMP} out\n")
    kubectl.flux('echo "$@" >>"${0%/*}/cancelled"')
    with kubectl.start(*RUN, *WORK) as process:
        assert process.stdout.readline() == "out\n"
        # it ended nobody's reading: a command has not read its input
        process.send_signal(signal.SIGPIPE)
        time.sleep(0.5)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (128 + number, say(INSTALLED, "removing mini"))
    assert (kubectl.folder / "home/bin/cancelled").read_text() == "cancel --all\n"
    assert not (kubectl.folder / "release").exists()


def test_the_third_ctrl_c_leaves_the_release_and_says_so(kubectl: Kubectl) -> None:
    (kubectl.folder / "slow").touch()
    kubectl.tool("cat", '/bin/cat "$@"; case $1 in */logs) exec sleep 300 ;; esac')
    (kubectl.folder / "logs").write_text(f"{STAMP} out\n")
    with kubectl.start(*RUN, *WORK) as process:
        assert process.stdout.readline() == "out\n"
        process.send_signal(signal.SIGINT)
        until(lambda: "uninstall" in asked_helm(kubectl))
        process.send_signal(signal.SIGINT)
        lines = [process.stderr.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:  # it came when Python began to wait for Helm: one more ends that
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT
    waits = "still removing: one more Ctrl-C leaves the rest behind"
    assert "".join(lines) == say(INSTALLED, "removing mini", waits)
    assert err == say(f"mini is left in namespace lab: stopped: {WAY_OUT}")


def test_run_ends_when_its_reader_is_gone(kubectl: Kubectl) -> None:
    kubectl.tool("cat", '/bin/cat "$@"; case $1 in */logs) exec sleep 300 ;; esac')
    (kubectl.folder / "logs").write_text(f"{STAMP} out\n")
    with kubectl.start(*RUN, *WORK) as process:
        assert process.stdout.readline() == "out\n"
        process.stdout.close()
        assert process.wait(60) == 128 + signal.SIGPIPE
    assert not (kubectl.folder / "release").exists()


def found(pods: list[Any], group: list[Any] | None = None) -> LiveCluster:
    """Return the objects of a MiniCluster, whose group has some pods."""
    its = read_pods({"items": group or []}, "gpu")
    return LiveCluster("mini", read_pods({"items": pods}), read_job(job()), [GroupNodes("gpu", 1, 8, 2, its)])


def test_a_lead_that_can_not_start_ends_the_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(reason: str) -> LiveCluster:
        return found([pod(0, waiting(reason, f"no image: {reason}"))])

    watch, times = StartWatch("mini"), iter((0.0, 59.0, 70.0, 80.0, 139.0, 140.0, 141.0, 142.0, 143.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    for reason in ("ErrImagePull", "ImagePullBackOff", "ContainerCreating", "ErrImagePull", "ImagePullBackOff"):
        watch(of(reason))
    message = "mini can't start: the lead is Pending: ImagePullBackOff: no image: ImagePullBackOff: correct the image's"
    with pytest.raises(StateError, match=f"^{message} name, or set pod.imagePullSecrets for its registry$"):
        watch(of("ImagePullBackOff"))
    with pytest.raises(StateError, match="InvalidImageName"):
        StartWatch("mini")(of("InvalidImageName"))
    StartWatch("mini")(found([pod(0, STARTS)]))


def test_a_volume_that_can_not_be_mounted_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(message: str) -> LiveCluster:
        lead = replace(read_pod(pod(0, waiting("ContainerCreating"))), message=message)
        return found([])._replace(pods={0: lead})

    watch, times = StartWatch("mini"), iter((0.0, 1.0, 2.0, 62.0, 63.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    # a volume that may come by itself has no known way out
    for message in (MOUNT, "AttachVolume.Attach failed: Multi-Attach error", MOUNT):
        watch(of(message))
    with pytest.raises(StateError, match=r"^mini can't start: the lead is Pending: ContainerCreating: .* not found: "):
        watch(of(MOUNT))


@pytest.mark.parametrize("group", [None, "gpu"])
def test_another_pod_that_can_not_start_ends_the_wait_for_the_quorum(
    monkeypatch: pytest.MonkeyPatch, group: str | None
) -> None:
    bad = pod(1, waiting("ErrImagePull", "no image"), name="mini-y")
    if group:
        bad["metadata"]["labels"]["minicluster/group"] = group
    lead = pod(0, STARTS)
    its = found([lead], [bad]) if group else found([lead, bad])
    watch, times = StartWatch("mini"), iter((0.0, 60.0, 61.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    watch(its)
    with pytest.raises(StateError, match=r"^mini can't start: pod mini-y is Pending: ErrImagePull: no image: correct"):
        watch(its)


def test_run_says_what_a_volume_lacks_and_its_last_line_too(kubectl: Kubectl) -> None:
    said = {"reason": "FailedMount", "message": MOUNT, "involvedObject": {"kind": "Pod", "name": "mini-0-x"}}
    waits = {"items": [lead(kubectl.folder, waiting("ContainerCreating"))]}
    kubectl.has(pods=waits, events={"items": [said]}, events_1={"items": []})
    reason = f"Starting: the lead is Pending: ContainerCreating: {MOUNT}: {CREATE}"
    assert kubectl.run(*RUN, "--timeout", "4s", *WORK) == Done(
        1,
        "",
        say(
            INSTALLED,
            "mini: Starting: the lead is Pending: ContainerCreating",
            f"mini: {reason}",
            "removing mini",
            f"mini in namespace lab: gave up after 4 s: {reason}",
        ),
    )
