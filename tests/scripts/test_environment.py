"""How Flux finds the view and the pod's CPUs, and which environment programs have."""

import os
from pathlib import Path

import pytest
from pods import Make, Pod

QUIET = {"logging": {"quiet": True}}
NAMES = ("FLUX_MODULE_PATH_PREPEND", "FLUX_EXEC_PATH_PREPEND", "FLUX_MODPROBE_PATH_APPEND", "FLUX_RC_EXTRA")
NOOP = ("FLUXION_RESOURCE_RC_NOOP", "FLUXION_QMANAGER_RC_NOOP")


def with_view(pod: Pod, *files: str) -> Path:
    """Give a pod a view that has flux and these files."""
    view = pod.root / "view"
    for file in ("bin/flux", *files):
        (view / file).parent.mkdir(parents=True, exist_ok=True)
        (view / file).touch(0o755)
    (view / "bin/flux").unlink()
    (view / "bin/flux").symlink_to(pod.root / "bin/flux")
    pod.edit("settings.sh", "mc_view=''\n", f"mc_view={view}\n")
    return view


def environment(pod: Pod, *names: str, **env: str) -> list[str]:
    """Return variables that a program of people and jobs gets, after the environment was sourced twice."""
    twice = ". $MINICLUSTER_HOME/flux-view.sh; " * 2
    (pod.home / "flux-view.sh").unlink(missing_ok=True)
    (pod.home / "flux-view.sh").symlink_to("minicluster/flux-view.sh")
    shown = " ".join(f'"${{{name}-unset}}"' for name in names)
    done = pod.exec(f"{twice} sh -c 'printf \"%s\\n\" {shown}'", **env)
    assert done.code == 0, done.both
    return done.out.splitlines()


FLUXION = "etc/flux/rc1.d/01-sched-fluxion"


def test_the_environment_lets_older_and_newer_flux_find_fluxion(make: Make) -> None:
    pod = make(QUIET)
    view = with_view(pod, FLUXION)
    places = [f"{view}/lib/flux/modules", f"{view}/libexec/flux/cmd", f"{view}/etc/flux/modprobe", f"{view}/etc/flux"]
    assert environment(pod, *NAMES, *NOOP) == [*places, "unset", "unset"]
    mine = dict.fromkeys(NAMES, "/mine:/too")
    assert environment(pod, *NAMES, **mine) == [f"/mine:/too:{place}" for place in places]


@pytest.mark.parametrize("simple", [False, True])
def test_fluxion_is_not_set_up_when_it_is_missing_or_sched_simple_is_chosen(make: Make, simple: bool) -> None:
    pod = make({**QUIET, "flux": {"scheduler": {"simple": simple}}})
    with_view(pod, *([FLUXION] if simple else []))
    assert environment(pod, *NAMES) == ["unset"] * 4
    assert environment(pod, *NOOP) == (["1", "1"] if simple else ["unset"] * 2)


@pytest.mark.parametrize("given", ["", "/their/python"])
def test_commands_of_flux_find_their_python_modules(make: Make, given: str) -> None:
    pod = make({**QUIET, "flux": {"container": {"pythonPath": given}}})
    assert environment(pod, "FLUX_PYTHONPATH_PREPEND") == [given or "unset"]
    view = with_view(pod, "lib/python3.11/site-packages/ply.py")
    assert environment(pod, "FLUX_PYTHONPATH_PREPEND") == [given or f"{view}/lib/python3.11/site-packages"]


@pytest.mark.parametrize("has_file", [True, False])
def test_a_flux_that_is_too_old_is_refused_by_its_version(make: Make, has_file: bool) -> None:
    pod = make(QUIET, {"cores": 1, "command": "true"})
    view = with_view(pod, "lib/pkgconfig/flux-core.pc")
    pod.play("--version", "printf 'commands:    \\t\\t0.53.1\\nlibflux-core:\\t0.53.1\\n'")
    if has_file:
        (view / "lib/pkgconfig/flux-core.pc").write_text("prefix=/opt\n\nName: flux-core\nVersion: 0.53.0\nLibs: -L\n")
    version = "0.53.0" if has_file else "0.53.1"
    want = f"minicluster: flux-core {version} is too old: set flux.container.image to a view that has 0.54 or later\n"
    assert pod.run() == (1, want)
    # a process costs on a node that starts all of its pods at once
    assert len(pod.calls()) == (not has_file)


def test_a_container_that_starts_again_does_not_change_the_view(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    view = with_view(pod)
    for _ in range(2):
        assert pod.run() == (0, "")
    assert ((pod.home / "view").readlink(), (view / "view").is_symlink()) == (view, False)


def test_job_shells_read_minicluster_lua_after_the_files_of_the_user(make: Make) -> None:
    pod = make(QUIET)
    assert environment(pod, "FLUX_SHELL_RC_PATH") == [f"{pod.home}/minicluster"]
    assert environment(pod, "FLUX_SHELL_RC_PATH", FLUX_SHELL_RC_PATH="/a:/b") == [f"/a:/b:{pod.home}/minicluster"]
    assert [path.name for path in (pod.home / "minicluster").glob("m*.lua")] == ["minicluster.lua"]


# CPUs --------------------------------------------------------------------------------------------------------

ALL = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("affinity", "asked", "unbound"),
    [
        ("auto", ALL, False),
        ("auto", ALL + 1, True),
        ("auto", None, True),
        ("auto", "500m", True),
        ("on", None, False),
        ("off", ALL, True),
    ],
)
def test_tasks_are_bound_only_when_the_pod_has_its_cpus_to_itself(
    make: Make, affinity: str, asked: object, unbound: bool
) -> None:
    resources = {"limits": {"cpu": asked}} if asked else {}
    pod = make({**QUIET, "flux": {"affinity": affinity}}, {"command": "true", "resources": resources})
    assert pod.run() == (0, "")
    assert (pod.run_folder / "unbound").exists() is unbound


# GPUs --------------------------------------------------------------------------------------------------------

#: The MIG devices of a pod, as NVIDIA's device plugin names them.
MIG = {"NVIDIA_VISIBLE_DEVICES": "MIG-a,MIG-b"}


@pytest.mark.parametrize(
    ("limit", "variables", "noted"),
    [
        ("cpu", MIG, None),
        ("nvidia.com/gpu", {}, None),
        ("nvidia.com/gpu", {"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}, None),
        ("nvidia.com/gpu", {"NVIDIA_VISIBLE_DEVICES": "void"}, None),
        ("nvidia.com/mig-1g.5gb", MIG, "CUDA_VISIBLE_DEVICES\nMIG-a,MIG-b\n"),
        ("nvidia.com/gpu", {**MIG, "CUDA_VISIBLE_DEVICES": "3,4"}, "CUDA_VISIBLE_DEVICES\n3,4\n"),
        ("amd.com/gpu", MIG, "ROCR_VISIBLE_DEVICES\n\n"),
        ("habana.ai/gaudi", {"HABANA_VISIBLE_MODULES": "5,4"}, "HABANA_VISIBLE_MODULES\n5,4\n"),
        ("aws.amazon.com/neuron", {"NEURON_RT_VISIBLE_CORES": "0"}, None),
    ],
    ids=str,
)
def test_the_variable_of_the_gpus_is_noted_with_the_names_that_they_have_in_the_pod(
    make: Make, limit: str, variables: dict[str, str], noted: str | None
) -> None:
    pod = make(QUIET, {"command": "true", "resources": {"limits": {limit: 2}}})
    file = pod.run_folder / "gpus"
    assert pod.run(**variables) == (0, "")
    assert (file.read_text() if file.exists() else None) == noted


GROUPS = [
    {"name": "amd", "size": 1, "resources": {"limits": {"cpu": 2, "amd.com/gpu": 2}}},
    {"name": "plain", "size": 1, "resources": {"limits": {"cpu": "1500m"}}},
]


@pytest.mark.parametrize(("group", "noted"), [("", None), ("amd", "ROCR_VISIBLE_DEVICES\n\n"), ("plain", None)])
def test_a_pod_of_a_group_is_a_worker_with_the_host_and_the_gpus_of_its_group(
    make: Make, group: str, noted: str | None
) -> None:
    runner = {"command": "true", "resources": {"limits": {"cpu": 4, "nvidia.com/gpu": 1}}}
    pod = make({**QUIET, "groups": GROUPS, "flux": {"completeWorkers": True}}, runner)
    if group:
        pod.play("start", "exit 0")
    assert pod.run(**({"MINICLUSTER_GROUP": group} if group else {})) == (0, "")
    [start] = pod.calls("start")
    assert pod.attributes(start)["hostname"] == f"flux-sample{group and '-'}{group}-0"
    assert bool(pod.calls("run")) == (not group), "only the lead has work"
    file = pod.run_folder / "gpus"
    assert (file.read_text() if file.exists() else None) == noted


# PYTHONPATH --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "prepended", "expected"),
    [
        ("/view", "/view", "unset"),
        ("/view:/a b:/c", "/view", "/a b:/c"),
        ("/a:/view", "/view", "/a:/view"),
        ("/view2:/a", "/view", "/view2:/a"),
        ("/a", None, "/a"),
        # an older flux puts its own bindings there too
        ("/view:/b/lib/flux/python3.11:/a", "/view", "/a"),
        ("/b/lib/flux/python3.11", None, "unset"),
        ("/a:/b/lib/flux/python3.11", None, "/a:/b/lib/flux/python3.11"),
    ],
)
def test_the_broker_of_a_job_has_the_pythonpath_of_the_image(
    make: Make, path: str, prepended: str | None, expected: str
) -> None:
    pod = make(QUIET)
    here, flux, other = pod.home / "minicluster", pod.root / "flux's own", pod.root / "other"
    for folder, text in ((flux, 'echo "${PYTHONPATH-unset} $*"'), (other, "exit 3")):
        folder.mkdir()
        (folder / "flux-broker").write_text(f"#!/bin/sh\n{text}\n")
        (folder / "flux-broker").chmod(0o755)
        (folder / "py-runner.py").touch()
    folders = f"/none:{pod.root}/othe*:{here}:{flux}:{other}"
    env = {"PYTHONPATH": path, "FLUX_EXEC_PATH": folders, "MINICLUSTER_HOME": str(pod.home)}
    env |= {"FLUX_PYTHONPATH_PREPEND": prepended} if prepended else {}
    done = pod.exec(f"'{here}/flux-broker' -Sa=b 'it s'", **env)
    own = f"-Sbroker.rc3_path=/bin/sh '{here}/instance_jobs.sh'"
    assert (done.code, done.both) == (0, f"{expected} {own} -Sa=b it s\n")


@pytest.mark.parametrize(("user", "is_old"), [(0, True), (1000, False)])
def test_an_older_broker_of_root_has_no_history_of_jobs(make: Make, user: int, is_old: bool) -> None:
    pod = make(QUIET)
    here = pod.home / "minicluster"
    pod.command("id", f"echo {user}")
    (pod.root / "flux-broker").write_text('#!/bin/sh\necho "$1"\n')
    (pod.root / "flux-broker").chmod(0o755)
    done = pod.exec(f"{here}/flux-broker", FLUX_EXEC_PATH=f"{here}:{pod.root}", MINICLUSTER_HOME=str(pod.home))
    own = f"-Sbroker.rc1_path=/bin/sh '{here}/instance_jobs.sh' begin\n"
    assert (done.code, done.both.startswith(own)) == (0, is_old)


@pytest.mark.parametrize(
    ("user", "version", "is_old"), [(0, "0.56.1", True), (1000, "0.56.1", False), (0, "0.57.0", False)]
)
def test_an_older_lead_of_root_has_no_history_of_jobs(
    make: Make, shell: str, user: int, version: str, is_old: bool
) -> None:
    if shell == "busybox":
        pytest.skip("its id is always its own")
    pod = make(QUIET, {"command": "true"})
    pod.command("id", f"echo {user}")
    pod.play("--version", f"echo 'commands:    {version}'")
    assert pod.run() == (0, "")
    assert [call.words for call in pod.calls("jobtap")] == [["jobtap", "remove", ".history"]] * is_old


def test_a_job_whose_flux_has_no_broker_fails_with_a_message(make: Make) -> None:
    pod = make(QUIET)
    here = pod.home / "minicluster"
    done = pod.exec(f"{here}/flux-broker", FLUX_EXEC_PATH=f"{here}:/none", MINICLUSTER_HOME=str(pod.home))
    assert (done.code, done.both) == (127, f"minicluster: no flux-broker in FLUX_EXEC_PATH {here}:/none\n")


@pytest.mark.parametrize("own", ["3.11", "3.9"])
def test_the_python_of_a_launcher_finds_flux_after_the_modules_of_the_image(make: Make, own: str) -> None:
    pod = make({}, {"command": 'echo "$MINICLUSTER_BINDINGS $PYTHONPATH"', "launcher": True})
    view = with_view(pod, "lib/flux/python3.11/flux/__init__.py")
    pod.command("python3", f"#!/bin/sh\necho {own}\n")
    code, log = pod.run(PYTHONPATH="/image's own")
    assert code == 0
    said = f"minicluster: the launcher can't import flux: the image's Python is {own}, that of Flux 3.11"
    assert (said in log.splitlines()) is (own != "3.11")
    bindings = f"{view}/lib/flux/python3.11"
    assert log.splitlines()[-1] == f"{bindings} /image's own:{bindings}"
