"""The programs that people, jobs and Kubernetes run in a pod: flux, minicluster-scale, the probe, the view's copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from minicluster.pod import programs
from pods import NAME, Make, Pod, until
from support import EACH_SHELL, INSTALLED_SHELLS

QUIET = {"logging": {"quiet": True}}
OUTER = "local:///tmp/outer"


def started(make: Make, **values: object) -> Pod:
    """Make a lead that is ready."""
    pod = make({**QUIET, **values})
    pod.start()
    until((pod.run_folder / "ready").exists)
    return pod


def own_uri(pod: Pod) -> str:
    return f"local://{pod.run_folder}/flux/local"


# flux --------------------------------------------------------------------------------------------------------


def test_flux_called_by_its_path_talks_to_the_broker_of_the_pod(make: Make) -> None:
    pod = started(make)
    done = pod.exec("$MINICLUSTER_HOME/bin/flux resource list 'a  b'")
    assert (done.code, done.both) == (0, "")
    [call] = pod.calls("resource", "list")
    assert (call.words[2:], call.env["FLUX_URI"]) == (["a  b"], own_uri(pod))


def test_flux_in_a_job_talks_to_the_instance_of_the_job(make: Make) -> None:
    """`flux batch` and `flux alloc` start an instance in a job; FLUX_URI is set in it."""
    pod = started(make)
    pod.exec("$MINICLUSTER_HOME/bin/flux resource list", FLUX_URI=OUTER)
    pod.exec(". $MINICLUSTER_HOME/flux-view.sh; flux resource status", FLUX_URI=OUTER)
    assert [call.env["FLUX_URI"] for call in pod.calls("resource")] == [OUTER, OUTER]


def test_flux_view_sh_sets_flux_uri_and_the_environment_of_the_values(make: Make) -> None:
    pod = started(make, flux={"environment": {"GREETING": "it's $HOME"}})
    done = pod.exec('. $MINICLUSTER_HOME/flux-view.sh; flux uptime; echo "$fluxsocket $FLUX_URI $GREETING"')
    assert (done.code, done.both) == (0, f"{own_uri(pod)} {own_uri(pod)} it's $HOME\n")
    assert [call.env["FLUX_URI"] for call in pod.calls("uptime")] == [own_uri(pod)]


def test_flux_keeps_the_variables_that_a_job_has_set(make: Make) -> None:
    pod = started(make, flux={"environment": {"A": "ours"}})
    script = (
        ". $MINICLUSTER_HOME/flux-view.sh; echo $A; A=theirs; . $MINICLUSTER_HOME/flux-view.sh; echo $A; flux uptime"
    )
    assert pod.exec(script).out == "ours\ntheirs\n"
    assert pod.calls("uptime")[0].env["A"] == "theirs"


def test_flux_view_sh_adds_flux_to_path_once(make: Make) -> None:
    pod = started(make)
    twice = ". $MINICLUSTER_HOME/flux-view.sh; " * 2
    assert pod.exec(f"{twice} echo $PATH").out == f"{pod.home}/bin:{pod.environment['PATH']}:{pod.home}/slurm\n"


# minicluster-scale -------------------------------------------------------------------------------------------


def test_minicluster_scale_in_a_job_with_its_own_instance_asks_the_cluster(make: Make) -> None:
    pod = started(make)
    inside = {"FLUX_URI": OUTER, "FLUX_KVS_NAMESPACE": "job-1"}
    done = pod.exec("$MINICLUSTER_HOME/bin/minicluster-scale 4", **inside)
    assert (done.code, done.both) == (0, "")
    [call] = pod.calls("python", "scale.py")
    assert call.words[2:] == [f"{pod.home}/minicluster/agent.json", "4"]
    assert call.env["FLUX_URI"] == own_uri(pod)
    assert "FLUX_KVS_NAMESPACE" not in call.env


# The probe ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "burst", "files", "ready"),
    [
        (0, False, [], False),
        (0, False, ["flux/local"], False),
        (0, False, ["flux/local", "ready"], True),
        (1, False, [], False),
        (1, False, ["flux/local"], True),
        # with flux.disableSocket the socket has another name
        (1, False, ["flux/local-1"], True),
        (1, False, ["ready"], False),
        # the first pod of a burst is not a lead
        (0, True, ["flux/local"], True),
        (0, True, ["ready"], False),
    ],
    ids=str,
)
def test_a_lead_is_ready_at_its_quorum_and_a_worker_with_its_socket(
    make: Make, index: int, burst: bool, files: list[str], ready: bool
) -> None:
    lead = {"name": "root", "address": "a", "size": 2}
    bursting = {"leadBroker": lead, "clusters": [{"name": NAME, "size": 1}]}
    pod = make({"flux": {"bursting": bursting}} if burst else {}, index=index)
    for name in files:
        path = pod.run_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    pod.edit("ready.sh", "TRIES=50", "TRIES=1")
    code, log = pod.run("ready.sh")
    assert ((code == 0), log) == (ready, "")


@pytest.mark.parametrize(("index", "file"), [(0, "ready"), (1, "flux/local-1")])
def test_a_pod_becomes_ready_while_its_probe_waits(make: Make, index: int, file: str) -> None:
    pod = make(index=index)
    process = pod.start("ready.sh")
    path = pod.run_folder / file
    path.parent.mkdir(parents=True)
    assert process.runs
    path.touch()
    assert (process.wait(), process.log) == (0, "")


# The view ----------------------------------------------------------------------------------------------------

VIEW = Path("/opt/views")
MAP_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]


@pytest.fixture
def opt(tmp_path: Path) -> list[str]:
    """Words that run a command with a folder of the test as /opt."""
    (tmp_path / "opt").mkdir()
    words = ["unshare", *MAP_ROOT, "--mount", "sh", "-c", 'mount --bind "$0" /opt && exec "$@"', str(tmp_path / "opt")]
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mounts of one's own here (unshare --mount)")
    return words


@pytest.mark.parametrize("shell", EACH_SHELL)
def test_copying_from_an_image_that_is_not_a_view_exits_with_66(
    shell: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = request.getfixturevalue("opt") if VIEW.exists() else []
    assert copied(shell, where, tmp_path / "to") == (
        66,
        "minicluster: the view image has no /opt/views/view/bin/flux: set flux.container.image to a Flux view\n",
    )


def copied(shell: str, where: list[str], to: Path, *words: str) -> tuple[int, str]:
    """Run the init container of the mode `copy`; return its exit code and what it printed."""
    to.mkdir(exist_ok=True)
    argv = [shell, *(["sh"] if shell == "busybox" else []), str(programs()["view.sh"]), *words]
    env = {**os.environ, "MINICLUSTER_VIEW": str(to)}
    done = subprocess.run([*where, *argv], env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("shell", EACH_SHELL)
def test_a_view_is_copied_with_its_links_and_modes(shell: str, opt: list[str], tmp_path: Path) -> None:
    """In a view, /opt/views/view and most of its files are links into /opt/software."""
    software = tmp_path / "opt/software/flux"
    (software / "bin").mkdir(parents=True)
    (software / "bin/flux").write_text("#!/bin/sh\n")
    (software / "bin/flux").chmod(0o755)
    (tmp_path / "opt/views").mkdir()
    (tmp_path / "opt/views/view").symlink_to("../software/flux")
    assert copied(shell, opt, tmp_path / "to") == (0, "")
    to = tmp_path / "to"
    assert sorted(str(path.relative_to(to)) for path in to.rglob("*")) == [
        "software",
        "software/flux",
        "software/flux/bin",
        "software/flux/bin/flux",
        "views",
        "views/view",
    ]
    assert (to / "views/view").readlink() == Path("../software/flux")
    assert os.access(to / "software/flux/bin/flux", os.X_OK)
    # a copy that fails is not a wrong image: the next try may succeed
    (tmp_path / "file").touch()
    env = {**os.environ, "MINICLUSTER_VIEW": str(tmp_path / "file")}
    script = [*opt, "sh", str(programs()["view.sh"])]
    done = subprocess.run(script, env=env, capture_output=True, check=False)
    assert done.returncode not in (0, 2)


#: Files of a view that has a Python, and whether they are copied without `all`.
FILES = {
    "bin/flux": True,
    "lib/libflux.so.3": True,
    "lib/python3.11/os.py": True,
    "lib/python3.11/__pycache__/os.cpython-311.pyc": True,
    "lib/python3.11/__pycache__/os.cpython-311.opt-1.pyc": False,
    "lib/python3.11/test/test_os.py": False,
    "lib/python3.11/unittest/test/__init__.py": False,
    "lib/python3.11/site-packages/flux/test/__init__.py": True,
    "lib/python3.11/site-packages/pip/__init__.py": False,
    "lib/python3.11/site-packages/setuptools/__init__.py": False,
    "lib/python3.11/site-packages/_distutils_hack/__init__.py": False,
    "lib/python3.11/site-packages/distutils-precedence.pth": False,
    "lib/python3.11/config-3.11-x86_64-linux-gnu/Makefile": False,
    "lib/libflux.a": False,
    "lib/pkgconfig/flux.pc": False,
    "include/flux/core.h": False,
    ".spack/spec.json": False,
    "share/man/man1/flux.1": False,
    "share/terminfo/x/xterm": True,
    "share/terminfo/w/wy50": False,
    "share/lua/5.3/man.lua": True,
    "etc/flux/info/a": True,
}


def files(folder: Path, origin: Path) -> set[str]:
    """Return the files of a folder as a pod sees them, for which /opt/software/flux is a copy of ``origin``."""
    found = set()
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink() and (origin / name).is_dir():
            assert path.readlink() == Path("/opt/software/flux", name)
            found |= {f"{name}/{file}" for file in files(origin / name, origin)}
        elif path.is_symlink() or path.is_file():
            found.add(name)
    return found


@pytest.mark.parametrize("shell", EACH_SHELL)
def test_the_copy_of_a_view_leaves_out_what_flux_does_not_need(shell: str, opt: list[str], tmp_path: Path) -> None:
    software = tmp_path / "opt/software/flux"
    view = tmp_path / "opt/views/view"
    for name in FILES:
        for folder in (software, view):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (software / name).write_text(name)
        (view / name).symlink_to(f"/opt/software/flux/{name}")
        os.utime(software / name, (1000, 1000))
    (software / "bin/flux").chmod(0o755)
    (view / "bin/python3").symlink_to(Path(sys.executable).resolve())
    to = tmp_path / "to"

    def found(folder: str) -> set[str]:
        return files(to / folder, to / "software/flux")

    needed = {name for name, is_copied in FILES.items() if is_copied}
    # a second time: a node that restarts runs its init containers again
    for _ in range(2):
        assert copied(shell, opt, to) == (0, "")
        assert (found("software/flux"), found("views/view")) == (needed, {*needed, "bin/python3"})
    copy = to / "software/flux/bin/flux"
    # Python uses byte code only if it has the time of its source
    assert (copy.read_text(), copy.stat().st_mode & 0o777, copy.stat().st_mtime) == ("bin/flux", 0o755, 1000)
    # bin/ has a link of its own; share/ has none, so the folder becomes one link
    assert (to / "views/view/bin/flux").readlink() == Path("/opt/software/flux/bin/flux")
    assert (to / "views/view/share").readlink() == Path("/opt/software/flux/share")
    assert copied(shell, opt, to, "all") == (0, "")
    assert (found("software/flux"), found("views/view")) == (set(FILES), {*FILES, "bin/python3"})


def test_a_view_whose_python_does_not_start_is_copied_whole(opt: list[str], tmp_path: Path) -> None:
    view = tmp_path / "opt/views/view"
    for name in ("bin/flux", "bin/python3", "include/flux/core.h"):
        (view / name).parent.mkdir(parents=True, exist_ok=True)
        (view / name).write_text("#!/no/such/loader\n")
        (view / name).chmod(0o755)
    (tmp_path / "opt/software").mkdir()
    assert copied(INSTALLED_SHELLS[0], opt, tmp_path / "to") == (0, "")
    assert (tmp_path / "to/views/view/include/flux/core.h").exists()


def test_a_failed_copy_of_the_view_is_an_error_of_one_line(opt: list[str], tmp_path: Path) -> None:
    bin_ = tmp_path / "opt/views/view/bin"
    bin_.mkdir(parents=True)
    (bin_ / "flux").touch()
    (bin_ / "python3").symlink_to(Path(sys.executable).resolve())
    code, said = copied(INSTALLED_SHELLS[0], opt, tmp_path / "to")
    missing = "[Errno 2] No such file or directory: '/opt/software'"
    assert (code, said) == (1, f"minicluster: the view was not copied: {missing}\n")


# Wall times --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", EACH_SHELL)
@pytest.mark.parametrize(
    ("centiseconds", "shown"),
    [
        (0, "0:00.00"),
        (5, "0:00.05"),
        (12_345, "2:03.45"),
        (359_999, "59:59.99"),
        (360_000, "1:00:00"),
        (4_500_000, "12:30:00"),
    ],
)
def test_wall_times_have_the_format_of_time(shell: str, centiseconds: int, shown: str) -> None:
    script = f". {programs()['time.sh']}; centiseconds() {{ echo $((1000 + {centiseconds})); }}; timed fluxstart 1000"
    argv = [shell, *(["sh"] if shell == "busybox" else []), "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == f"FLUXTIME fluxstart wall time {shown}\n"


# helm test ---------------------------------------------------------------------------------------------------


def test_helm_test_waits_for_the_quorum_with_a_time_limit(make: Make, shell: str) -> None:
    if shell == "busybox":
        pytest.skip("its nslookup is always its own")
    pod = make()
    pod.command("nslookup", f'#!/bin/sh\necho "$1" >>{pod.root}/asked\n[ $(wc -l <{pod.root}/asked) -gt 2 ]\n')
    assert pod.run("quorum.sh", "name-ready.ns", "30") == (0, "the cluster has its quorum\n")
    assert (pod.root / "asked").read_text() == "name-ready.ns\n" * 3
    pod.command("nslookup", "#!/bin/sh\nexit 1\n")
    code, log = pod.run("quorum.sh", "name-ready.ns", "0")
    assert code == 1
    assert log.startswith("no quorum within 0 s: ")


# The user ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", ["$MINICLUSTER_HOME/bin/flux run true", ". $MINICLUSTER_HOME/flux-view.sh; flux run true"]
)
def test_what_people_run_has_the_home_and_the_user_that_the_work_has(make: Make, shell: str, how: str) -> None:
    """A random uid has no passwd entry, and kubectl gives it the home /."""
    if shell == "busybox":
        pytest.skip("its id is always its own")
    pod = make(QUIET)
    pod.command("id", '#!/bin/sh\n[ "$1" != -un ] || exit 1\necho 12345\n')
    pod.environment["HOME"] = "/"
    pod.start()
    until((pod.run_folder / "ready").exists)
    assert pod.exec(how).both == ""
    [start], [run] = pod.calls("start"), pod.calls("run")
    for call in (start, run):
        assert (call.env["HOME"], call.env["USER"], call.env["LOGNAME"]) == (f"{pod.state}/home", "flux", "flux")
    assert Path(run.env["HOME"]).is_dir()


def test_another_user_than_the_broker_s_gets_a_home_of_its_own(make: Make) -> None:
    pod = started(make)
    pod.edit("flux-view.sh", 'if [ -w "$mc_state" ]', "if false")  # root may write everywhere
    pod.environment["HOME"] = "/"
    pod.exec("$MINICLUSTER_HOME/bin/flux run true")
    assert pod.calls("run")[0].env["HOME"] == f"{pod.home}/.own-{os.getuid()}/home"


def test_the_usual_home_of_a_user_stays(make: Make) -> None:
    pod = started(make)
    pod.exec("$MINICLUSTER_HOME/bin/flux run true")
    assert pod.calls("run")[0].env["HOME"] == pod.environment["HOME"]


# A shutdown --------------------------------------------------------------------------------------------------

ABORTED = 'minicluster: the cluster is shut down; "rc2 aborted" above is how Flux ends a program that waits for this\n'


def test_what_flux_shows_of_a_shutdown_is_explained(make: Make) -> None:
    pod = started(make)
    pod.play("shutdown", "echo rc2.0: aborted")
    assert pod.exec("$MINICLUSTER_HOME/bin/flux shutdown").both == f"rc2.0: aborted\n{ABORTED}"
    assert pod.exec("$MINICLUSTER_HOME/bin/flux shutdown", FLUX_URI=OUTER).both == "rc2.0: aborted\n"
    pod.play("shutdown", "exit 3")
    done = pod.exec("$MINICLUSTER_HOME/bin/flux shutdown")
    assert (done.code, done.both) == (3, "")
