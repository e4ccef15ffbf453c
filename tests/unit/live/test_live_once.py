"""``minicluster run``, with stand-ins of kubectl and Helm."""

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import FORBIDDEN, Kubectl, lead, say
from minicluster.cluster.lead import read_lead
from minicluster.errors import StateError
from minicluster.kubectl import CommandError
from minicluster.live import once
from status_samples import STARTS, ended, job, pod, waiting

from tools.clients import Done, until

END = "PodFailurePolicy"
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
WAY_OUT = "`helm uninstall mini --namespace lab` removes it"
STAMP = "2030-01-01T12:00:01.5Z"


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    kubectl = Kubectl(tmp_path)
    kubectl.tool("helm", HELM)
    return kubectl


def asked_helm(kubectl: Kubectl) -> list[str]:
    return (kubectl.folder / "helm.asked").read_text().splitlines()


def ends(kubectl: Kubectl, code: int) -> dict[str, Any]:
    """Return the answers of a cluster that is ready at first, and has ended at the fourth look."""
    how = ("Complete" if code == 0 else "Failed", END)
    ready, over = {"items": [lead(kubectl.folder)]}, {"items": [lead(kubectl.folder, ended(code))]}
    return {
        **{f"job_{n}": job() for n in (1, 2, 3)},
        "job": job(end=how),
        **{f"pods_{n}": ready for n in (1, 2, 3, 4)},
        "pods": over,
    }


@pytest.mark.parametrize("code", [0, 7])
def test_run_prints_the_log_and_ends_with_the_code_of_the_work(kubectl: Kubectl, code: int) -> None:
    kubectl.has(**ends(kubectl, code))
    (kubectl.folder / "logs").write_text(f"{STAMP} out\n")
    how = "Complete" if code == 0 else "Failed"
    lines = (INSTALLED, f"mini has ended (exit code {code}): {how}: {END}: said why")
    assert kubectl.run(*RUN, *WORK) == Done(code, "out\n", say(*lines))
    assert asked_helm(kubectl) == ["install", "list", "uninstall"]


def test_run_without_a_log_still_ends_with_the_code_of_the_work(kubectl: Kubectl) -> None:
    kubectl.has(**ends(kubectl, 7))
    refusal = FORBIDDEN.format("pods/log", "get")
    (kubectl.folder / "logs.error").write_text(refusal)
    done = kubectl.run(*RUN, "--keep", *WORK)
    assert (done.code, done.out) == (7, "")
    assert done.err.splitlines()[1:] == [
        f"minicluster: {refusal}: ask for a Role that allows it",
        "minicluster: mini has ended (exit code 7): Failed: PodFailurePolicy: said why",
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
    last = f"mini has ended (exit code 7): Failed: {END}: said why"
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_work_and_removes_the_release(kubectl: Kubectl, number: int) -> None:
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


def start_watch(*found: Any) -> once.StartWatch:
    """Return what watches the start of a MiniCluster whose groups have these pods, or an error in their place."""

    class Pods:
        def get(self, *_: str) -> None:
            raise AssertionError

        def select(self, kind: str, labels: str, /) -> Any:
            assert (kind, labels.rpartition(",")[2]) == ("pods", "minicluster/group")
            for one in found:
                if isinstance(one, CommandError):
                    raise one
            return {"items": found}

    return once.StartWatch("mini", Pods())


def test_a_lead_that_can_not_start_ends_the_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(reason: str) -> Any:
        waiting = {"waiting": {"reason": reason, "message": f"no image: {reason}"}}
        state = {"phase": "Pending", "containerStatuses": [{"name": "mini", "state": waiting}]}
        return read_lead({"items": [lead(tmp_path, state)]})

    watch, times = start_watch(), iter((0.0, 59.0, 70.0, 80.0, 139.0, 140.0, 141.0, 142.0, 143.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    for reason in ("ErrImagePull", "ImagePullBackOff", "ContainerCreating", "ErrImagePull", "ImagePullBackOff"):
        assert not watch(of(reason))
    message = "^mini can't start: the lead is Pending: ImagePullBackOff: no image: ImagePullBackOff: check the image's "
    with pytest.raises(StateError, match=message):
        watch(of("ImagePullBackOff"))
    with pytest.raises(StateError, match="InvalidImageName"):
        start_watch()(of("InvalidImageName"))
    assert not start_watch()(read_lead({"items": [lead(tmp_path, STARTS)]}))
    assert start_watch()(read_lead({"items": [lead(tmp_path)]}))


def test_a_group_that_can_not_start_ends_the_wait_for_the_quorum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = pod(0, waiting("ErrImagePull", "no image"), name="mini-gpu-0-x")
    bad["metadata"]["labels"]["minicluster/group"] = "gpu"
    watch, times = start_watch(bad), iter((0.0, 60.0, 61.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    waits = read_lead({"items": [lead(tmp_path, STARTS)]})
    assert not watch(waits)
    with pytest.raises(StateError, match=r"^mini can't start: pod mini-gpu-0-x is Pending: ErrImagePull: no image: "):
        watch(waits)
    # the quorum may not need it
    assert watch(read_lead({"items": [lead(tmp_path)]}))
    # nor does an outage end it
    assert not start_watch(CommandError("kubectl get pods", "away"))(waits)
