"""What the image, the values and the snippets set reaches the work unchanged, and neither our programs nor Flux."""

from typing import Any

import pytest
from pods import ROOT, Make, Pod

QUIET = {"logging": {"quiet": True}}
APP = f"{ROOT}/app"
#: What leads a program of ours, or Flux, astray
ASTRAY = {
    "PATH": APP,
    "PYTHONHOME": "/opt/conda",
    "PYTHONPATH": "/opt/conda/lib",
    "PYTHONSAFEPATH": "1",
    "PYTHONOPTIMIZE": "2",
    "PYTHON_GIL": "0",
    "GLOBIGNORE": "*~",
    "BASHOPTS": "failglob:nullglob",
    "SHELLOPTS": "noclobber:noglob",
    "POSIXLY_CORRECT": "y",
    "CDPATH": "/tmp:/",
    "BASH_ENV": "/nonexistent/rc",
    "ENV": "/nonexistent/rc",
    "LANGUAGE": "de",
    "TMPDIR": "/nonexistent",
    "LUA_INIT": "error()",
}
OURS = [name for name in ASTRAY if name.startswith("PYTHON")]
SHOWN = [name for name in ASTRAY if name not in ("BASHOPTS", "SHELLOPTS", "TMPDIR")]
SHOW = "".join(f'echo "{name}=${{{name}-unset}}"\n' for name in SHOWN)


def own(pod: Pod) -> dict[str, str]:
    """Return the variables in a pod."""
    return {name: value.replace(f"{ROOT}/", f"{pod.root}/") for name, value in ASTRAY.items()}


def shown(pod: Pod) -> list[str]:
    """Return what SHOW prints in the work."""
    want = own(pod)
    want = {**want, "PATH": f"{pod.home}/bin:{want['PATH']}:{pod.home}/slurm"}
    return [f"{name}={want[name]}" for name in SHOWN]


def check(pod: Pod, code: int, log: str) -> None:
    """The work has all, and no call of flux before it has what is Python's."""
    assert (code, log.splitlines()) == (0, shown(pod))
    [start] = pod.calls("start")
    want = own(pod)
    calls = [start, *pod.calls("python"), *pod.calls("R")]
    assert [name for call in calls for name in OURS if call.env.get(name) == want[name]] == []
    path = start.env["PATH"].removeprefix(f"{pod.home}/bin:").replace(f":{pod.home}/slurm:", ":")
    assert path.startswith(f"{pod.root}/app:{pod.root}/bin:")


@pytest.mark.parametrize("how", [{}, {"launcher": True}], ids=["job", "launcher"])
def test_the_work_has_the_variables_of_the_image_and_our_programs_have_not(make: Make, how: dict[str, Any]) -> None:
    pod = make(QUIET, {"command": SHOW, **how})
    check(pod, *pod.run(**own(pod)))


@pytest.mark.parametrize("where", ["pre", "init", "brokerPre", "flux.environment"])
def test_the_work_has_the_variables_of_snippets_and_values_and_our_programs_have_not(make: Make, where: str) -> None:
    names = {name: value for name, value in ASTRAY.items() if name in SHOWN}
    exports = "".join(f"export {name}='{value}'\n" for name, value in names.items())
    snippet = {} if "." in where else {"commands": {where: f"{exports}IFS=,\nset -fC\n"}}
    flux = {"flux": {"environment": names}} if "." in where else {}
    pod = make({**QUIET, **flux}, {"command": SHOW, **snippet})
    check(pod, *pod.run())


def test_a_snippet_has_the_variables_of_the_work(make: Make) -> None:
    pod = make(QUIET, {"command": "true", "commands": {"pre": f"{{ {SHOW} }} >$MINICLUSTER_HOME/said"}})
    assert pod.run(**own(pod)) == (0, "")
    assert (pod.home / "said").read_text().splitlines() == shown(pod)


def test_a_check_of_the_node_has_the_variables_of_the_work(make: Make) -> None:
    pod = make(QUIET, {"command": "true", "commands": {"nodeCheck": f"{{ {SHOW} }} >$MINICLUSTER_HOME/said"}})
    assert pod.run(**own(pod)) == (0, "")
    assert (pod.home / "said").read_text().splitlines() == shown(pod)


@pytest.mark.parametrize("kind", ["sidecar", "service"])
def test_the_command_of_another_container_has_its_variables(make: Make, kind: str) -> None:
    side = {"name": "side", "image": "none", "command": SHOW}
    values = {"services": [side]} if kind == "service" else {"containers": [side]}
    pod = make({**QUIET, **values}, {"runFlux": True})
    pod.edit("settings.sh", "mc_no_wait_socket=''", "mc_no_wait_socket=1")
    pod.edit("container.sh", "run sleep infinity", "true")
    code, log = pod.run("container.sh", "side", kind, **own(pod))
    expected = shown(pod)
    if kind == "service":
        expected = [line.replace(f"{pod.home}/bin:", "").replace(f":{pod.home}/slurm", "") for line in expected]
    assert (code, log.splitlines()) == (0, expected)


def test_the_programs_start_in_an_image_whose_path_has_only_its_application(make: Make) -> None:
    pod = make(QUIET, {"command": "true"})
    (pod.home / "minicluster").rename(pod.home / "configmap")
    argv = [str(pod.root / "bin/sh"), str(pod.home / "configmap/start.sh"), "entrypoint.sh"]
    done = pod.exec(f"exec {' '.join(argv)}", **own(pod))
    assert (done.code, done.out) == (0, "")
    assert pod.exec(f"exec {argv[0]} $MINICLUSTER_HOME/configmap/ready.sh", **own(pod)).code == 0


@pytest.mark.parametrize("tool", ["cp", "timeout"])
def test_a_tool_that_the_image_lacks_is_named(make: Make, tool: str) -> None:
    pod = make(QUIET, {"command": "true"})
    (pod.home / "minicluster").rename(pod.home / "configmap")
    (pod.root / "bin" / tool).unlink()
    done = pod.exec("exec /bin/sh $MINICLUSTER_HOME/configmap/start.sh entrypoint.sh")
    path = f"{pod.root}/bin:{pod.root}/bin"
    said = f"there is no {tool} in this image (PATH {path}): use one that has the usual tools, or busybox"
    assert (done.code, done.both) == (127, f"minicluster: {said}\n")


# flux --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "kept"), [("jobs -a", False), ("python x.py", False), ("exec env", True)])
def test_flux_has_no_variables_of_another_python_unless_it_passes_them_on(make: Make, words: str, kept: bool) -> None:
    pod = make(QUIET)
    pod.exec(f"$MINICLUSTER_HOME/minicluster/flux.sh {words}", PYTHONHOME="/opt/conda", PYTHONPATH="/a")
    [call] = pod.calls()
    assert (call.env.get("PYTHONHOME"), call.env["PYTHONPATH"]) == ("/opt/conda" if kept else None, "/a")


@pytest.mark.parametrize(
    ("words", "becomes"),
    [
        ("-Sa=b -c /d -v /x/run 'it s' -c", "-Sa=b|-c|/d|-v|/bin/sh|THEIRS|/x/run|it s|-c"),
        ("-S a=b --conf=x value", "-S|a=b|--conf=x|/bin/sh|THEIRS|value"),
        ("-Sa=b", "-Sa=b"),
    ],
)
@pytest.mark.parametrize("home", ["/opt/conda", None])
def test_the_program_of_an_instance_in_a_job_gets_its_variables_back(
    make: Make, words: str, becomes: str, home: str | None
) -> None:
    pod = make(QUIET)
    flux = pod.root / "flux"
    flux.mkdir()
    (flux / "flux-broker").write_text('#!/bin/sh\necho "${PYTHONHOME-unset}"\nprintf "%s|" "$@"\n')
    (flux / "flux-broker").chmod(0o755)
    (flux / "py-runner.py").touch()
    here = pod.home / "minicluster"
    env = {"FLUX_EXEC_PATH": f"{here}:{flux}", **({"PYTHONHOME": home} if home else {})}
    done = pod.exec(f"{here}/flux-broker {words}", **env)
    expected = becomes.replace("THEIRS", f"{here}/theirs.sh")
    expected = expected if home else expected.replace(f"/bin/sh|{here}/theirs.sh|", "")
    own = f"-Sbroker.rc3_path=/bin/sh '{here}/instance_jobs.sh'"
    assert (done.code, done.both) == (0, f"unset\n{own}|{expected}|")


@pytest.mark.parametrize("program", ["env", "env | cat"])
def test_theirs_runs_a_program_or_a_command_line_with_what_was_set_aside(make: Make, program: str) -> None:
    pod = make(QUIET)
    words = f"'{program}'" if " " in program else pod.root / "bin/env"
    done = pod.exec(f"exec $MINICLUSTER_HOME/minicluster/theirs.sh {words}", MINICLUSTER_PYTHONHOME="/opt/conda")
    assert done.code == 0
    assert "PYTHONHOME=/opt/conda" in done.out.splitlines()
    assert "MINICLUSTER_PYTHONHOME" not in done.out
    assert f"PATH={pod.home}/bin:{pod.root}/bin" in done.out.splitlines()
