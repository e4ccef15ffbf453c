"""The workflows of GitHub have sound shell steps, and name the tested tools."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
FILES = [*sorted(WORKFLOWS.glob("*.yaml")), ROOT / "gitops" / "github-actions" / "render.yaml"]
SHELLCHECK = shutil.which("shellcheck", path=str(Path(sys.executable).parent))


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_the_shell_steps_of_a_workflow_pass_shellcheck(file: Path) -> None:
    assert SHELLCHECK, "`make setup` installs it"
    jobs = yaml.safe_load(file.read_text())["jobs"]
    scripts = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert scripts
    for script in scripts:
        # GitHub pastes such values unquoted
        assert "${{" not in script
        subprocess.run([SHELLCHECK, "--shell=bash", "-"], input=script, text=True, check=True)


@pytest.mark.parametrize("file", [f for f in FILES if f.stem not in ("docs", "nightly")], ids=lambda path: path.stem)
def test_workflows_name_the_tested_versions_of_helm(file: Path) -> None:
    pins = [
        re.findall(rf"helm\.sh/helm/v{major} (v\S+)", (ROOT / "tools" / folder / "go.mod").read_text())[0]
        for major, folder in ((3, "helm3"), (4, "helm"))
    ]
    # the versions of actions are comments
    named = re.findall(r"\bv[34]\.\d+\.\d+", re.sub(r"  # v.*", "", file.read_text()))
    assert named
    assert set(named) <= set(pins)


def test_the_steps_of_the_release_fail_with_each_command_of_a_pipe() -> None:
    # GitHub's own default has no pipefail: "jobs.<job_id>.steps[*].shell"
    assert yaml.safe_load((WORKFLOWS / "release.yaml").read_text())["defaults"] == {"run": {"shell": "bash"}}


def test_the_test_workflow_runs_the_checks_of_every_change() -> None:
    assert "run: .ci/run" in (WORKFLOWS / "test.yaml").read_text()


def test_the_flux_job_of_the_test_workflow_fails_without_flux_or_unshare() -> None:
    """The tests skip themselves without Flux or without pods, so the job itself must fail then."""
    job = yaml.safe_load((WORKFLOWS / "test.yaml").read_text())["jobs"]["flux"]
    assert job["container"]["image"].partition(":")[0] == "fluxrm/flux-sched"
    # `unshare --mount` needs it, and the image's user is not root
    assert job["container"]["options"].split() == ["--privileged", "--user", "root"]
    *_, check, tests = [step["run"] for step in job["steps"] if "run" in step]
    # as tests/flux/conftest.py finds out whether pods can be made
    assert shlex.split(check) == ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "true"]
    assert tests == "make unit flux"


def test_make_flux_fails_where_there_is_no_flux(tmp_path: Path) -> None:
    make = shutil.which("make")
    if not make:
        pytest.skip("make is missing")
    command = [make, "--old-file=.venv/installed", "flux"]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.splitlines()[0] == (
        "make: flux is missing: install flux-core, or set FLUX_PREFIX to the prefix of one"
    )


@pytest.mark.parametrize("version", ["", "1.33", "latest; true"])
@pytest.mark.parametrize("target", ["kubernetes", "kueue"])
def test_make_refuses_a_wrong_version_of_kubernetes_or_kueue(target: str, version: str) -> None:
    make = shutil.which("make")
    if not make:
        pytest.skip("make is missing")
    command = [make, "--dry-run", target, f"VERSION={version}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f'VERSION is "{version}": give a release, such as make kubernetes VERSION=1.33.13' in done.stderr


def test_the_site_is_published_beside_its_other_versions(tmp_path: Path) -> None:
    """The step that publishes runs on a repository of this machine; `gh` only gives git a password."""
    job = yaml.safe_load((WORKFLOWS / "docs.yaml").read_text())["jobs"]["publish"]
    (script,) = (step["run"] for step in job["steps"] if "run" in step)
    bare, programs = tmp_path / "bare", tmp_path / "bin"
    subprocess.run(["git", "init", "--quiet", "--bare", bare], check=True)
    programs.mkdir()
    (programs / "gh").symlink_to("/bin/true")
    for number, version in enumerate(["main", "v0.9.0", "v0.10.0", "main"]):
        work = tmp_path / str(number)
        (work / "site").mkdir(parents=True)
        (work / "site" / "index.html").write_text(f"{version} {number}")
        if number:  # as an old release has none
            (work / "site" / "llms.txt").write_text(f"# {version}\n\n- [A](a/b.md): C.\n")
        env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        env |= {"REPOSITORY": str(bare), "GITHUB_REF_NAME": version, "GITHUB_SHA": "abc"}
        subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=work, env=env, check=True, timeout=60)
    show = ["git", "-C", bare, "show"]
    files = {
        path: subprocess.run([*show, f"gh-pages:{path}"], capture_output=True, text=True, check=True).stdout
        for path in (
            "main/index.html",
            "v0.9.0/index.html",
            "v0.10.0/index.html",
            ".nojekyll",
            "index.html",
            "llms.txt",
        )
    }
    assert files == {
        "main/index.html": "main 3",
        "v0.9.0/index.html": "v0.9.0 1",
        "v0.10.0/index.html": "v0.10.0 2",
        ".nojekyll": "",
        "index.html": '<!doctype html><meta http-equiv="refresh" content="0; url=v0.10.0/">\n',
        "llms.txt": "# v0.10.0\n\n- [A](v0.10.0/a/b.md): C.\n",
    }
