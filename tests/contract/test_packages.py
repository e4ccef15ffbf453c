"""The released packages, installed as by a new user: the Helm 4 plugin from its archive and its folder, and the wheel.

Nothing is downloaded: pip finds the wheels that `make setup` keeps, and builds with what is in .venv.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from newcomer import OFFLINE, VERSION, WHEELS, User, make_environment, need_wheels
from support import BIN, CHART, ROOT, Done, Helm, by_name, lines_with, one

from tools import clients

# one worker installs them
pytestmark = pytest.mark.xdist_group("packages")
POST = ("--post-renderer", "minicluster")
NAMED = ("--set", "flux.curveCertSecret=x")
AGAIN = "then: helm plugin uninstall minicluster, and install it again"


def test_the_chart_names_the_images_that_it_uses(helm4: Helm) -> None:
    annotations = yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]
    pod = one(helm4.template(), "Job")["spec"]["template"]["spec"]
    used = {container["image"] for container in [*pod["initContainers"], *pod["containers"]]}
    assert {image["image"] for image in yaml.safe_load(annotations["artifacthub.io/images"])} == used


# The plugin --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module", params=["archive", "folder"])
def installed(
    request: pytest.FixtureRequest, built: Path, environment: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[User]:
    """A user with the plugin installed. At the end it is uninstalled, and nothing is left."""
    need_wheels()
    user = User(tmp_path_factory.mktemp("home"), "python3")
    # that of the archive is made as a user's
    if request.param == "folder":
        user.copies(environment)
    # a folder of Helm 4 alone, as docs/how-to/install.md has it
    user.env["HELM_DATA_HOME"] = str(user.home / ".local" / "share" / "helm4")
    user.plugins = user.home / ".local" / "share" / "helm4" / "plugins"
    archive = built / f"minicluster-{VERSION}.tgz"
    source = [archive, "--verify=false"] if request.param == "archive" else [ROOT / "plugin"]
    assert "Installed plugin: minicluster" in user.ok("plugin", "install", *source)
    yield user
    assert "Uninstalled plugin: minicluster" in user.ok("plugin", "uninstall", "minicluster")
    assert user.left() == []


#: An installed folder is a link to the same run.sh, which renders there too
FROM_ARCHIVE = pytest.mark.parametrize("installed", ["archive"], indirect=True, scope="module")


def test_the_installed_plugin_renders_without_other_packages(installed: User) -> None:
    assert re.search(rf"^minicluster\s+{VERSION}\s+postrenderer/v1", installed.ok("plugin", "list"), re.MULTILINE)
    made = by_name(installed.ok("template", "a", CHART, *POST))
    assert {("Job", "a"), ("ConfigMap", "a-config"), ("Secret", "a-curve")} <= set(made)


@FROM_ARCHIVE
def test_an_error_of_the_installed_plugin_reaches_the_user(installed: User) -> None:
    done = installed.run("template", "a", CHART, *POST, "--set", "size=4,maxSize=3")
    assert done.code == 1
    assert lines_with(
        done.err, "minicluster: MiniCluster a: size is 4, maxSize 3: lower size, or install with a larger"
    )


@FROM_ARCHIVE
def test_the_installed_plugin_runs_the_commands_of_minicluster(installed: User) -> None:
    script = next(installed.plugins.glob("*/run.sh"))
    command = ["sh", script, "template", "a", *NAMED]
    env = installed.env | {"HELM_BIN": str(BIN / "helm")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("Job", "a") in by_name(done.stdout)


@FROM_ARCHIVE
def test_the_installed_plugin_runs_no_python_of_the_current_folder(installed: User) -> None:
    folder = installed.home / "minicluster"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('not this one')")
    assert ("Job", "a") in by_name(installed.ok("template", "a", CHART, *POST, *NAMED))
    shutil.rmtree(folder)


def test_the_plugin_install_without_python_says_so_and_leaves_nothing_that_renders(built: Path, tmp_path: Path) -> None:
    user = User(tmp_path)
    done = user.run("plugin", "install", built / f"minicluster-{VERSION}.tgz", "--verify=false")
    assert done.code == 1
    [line] = lines_with(done.err, "minicluster: needs Python 3.11 or later with venv, and found no python3 in PATH: ")
    assert line.endswith(f"install it (Debian: python3-venv); {AGAIN}")
    # until it is installed again, the plugin prints a message and does nothing
    text = user.run("template", "a", CHART, *POST)
    assert lines_with(text.err, "minicluster: the plugin has no environment of its own, and there is no minicluster")
    user.ok("plugin", "uninstall", "minicluster")
    assert user.left() == []


def refusal(user: User, plugin: Path = ROOT / "plugin") -> str:
    """Return why the hook that Helm runs refuses to install the plugin in a folder; it leaves no environment."""
    (user.home / "plugin").symlink_to(plugin)
    env = user.env | {"HELM_PLUGIN_DIR": str(user.home / "plugin")}
    done = clients.run("sh", plugin / "install.sh", env=env, cwd=user.home)
    assert (done.code, done.out) == (1, "")
    assert not (user.home / "plugin.env").exists()
    [line] = done.err.splitlines()
    why, again = line.removeprefix("minicluster: ").split("; ", 1)
    assert again == AGAIN
    return why


OLD = '#!/bin/sh\n[ "$1" != --version ] || echo Python 3.9.2\nexit $(( $# > 1 ))\n'


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    user = User(tmp_path)
    (tmp_path / "bin" / "python3").write_text(OLD)
    (tmp_path / "bin" / "python3").chmod(0o755)
    assert refusal(user) == (
        "needs Python 3.11 or later with venv, and found Python 3.9.2 in PATH: install it (Debian: python3-venv)"
    )


def test_packages_that_pip_can_not_get_are_named(environment: Path, tmp_path: Path) -> None:
    user = User(tmp_path, "python3")
    user.copies(environment)
    user.env["PIP_FIND_LINKS"] = "/nowhere"
    assert refusal(user).startswith("pip can't get its packages: ERROR: No matching distribution found for click==")


def test_a_package_with_another_hash_is_refused(environment: Path, tmp_path: Path) -> None:
    need_wheels()
    wheels = tmp_path / "wheels"
    shutil.copytree(WHEELS, wheels, copy_function=os.symlink)
    [changed] = wheels.glob("click-*.whl")
    original = changed.resolve()
    changed.unlink()
    shutil.copy(original, changed)
    with zipfile.ZipFile(changed, "a") as wheel:
        wheel.writestr("click/more.py", "")
    user = User(tmp_path / "home", "python3")
    user.copies(environment)
    user.env["PIP_FIND_LINKS"] = str(wheels)
    why = refusal(user)
    assert why.startswith("click==")
    assert why.partition(" from ")[2] == (
        f"{changed.as_uri()} does not have the hash that requirements.txt names: get it from PyPI, or from a mirror "
        "of its files"
    )


def test_a_plugin_that_does_not_render_is_not_installed(environment: Path, tmp_path: Path) -> None:
    need_wheels()
    folder = tmp_path / "plugin"
    shutil.copytree(ROOT / "plugin", folder, ignore=shutil.ignore_patterns("__pycache__"), copy_function=os.symlink)
    # its packages can be installed, but the plugin itself fails
    stream = folder / "minicluster" / "render" / "stream.py"
    stream.unlink()
    stream.write_text("raise ImportError('torn')\n")
    user = User(tmp_path / "home", "python3")
    user.copies(environment)
    assert refusal(user, folder).startswith("does not render: minicluster: ImportError at stream.py:1")


# The wheel ---------------------------------------------------------------------------------------------------


def image_install(dist: Path) -> list[str]:
    """Return the words of pip by which the images install the files of a release, for a folder other than /dist."""
    text = (ROOT / "gitops" / "follow" / "Containerfile").read_text().replace("\\\n", "")
    [line] = re.findall(r"^RUN --mount=type=bind,source=dist,target=/dist pip (.*)", text, re.MULTILINE)
    [pins] = dist.glob("minicluster-*-requirements.txt")
    paths = {"/dist": str(dist), "/dist/minicluster-*-requirements.txt": str(pins)}
    return [paths.get(word, word) for word in shlex.split(line)]


@pytest.fixture(scope="module")
def venv(built: Path, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a folder with a space, by its hash and as the images do; return its programs."""
    need_wheels()
    folder = tmp_path_factory.mktemp("a venv")
    shutil.copytree(environment, folder, symlinks=True, dirs_exist_ok=True)
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, *image_install(built)], check=True, env=OFFLINE | {"PIP_NO_COMPILE": "1"})
    return folder / "bin"


def minicluster(venv: Path, user: User, *args: object) -> Done:
    command = [venv / "minicluster", *map(str, args)]
    env = user.env | {"HELM_BIN": str(BIN / user.helm)}
    done = subprocess.run(command, env=env, cwd=user.home, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def test_the_wheel_renders_the_same_as_the_clone(venv: Path, tmp_path: Path) -> None:
    user = User(tmp_path)
    assert minicluster(venv, user, "--version").out == f"minicluster, version {VERSION}\n"
    chart = Path(minicluster(venv, user, "chart", "path").out.strip())
    assert chart.is_relative_to(venv.parent)
    here = [sys.executable, "-m", "minicluster", "template", "a", *NAMED]
    ours = subprocess.run(
        here, env=user.env | {"HELM_BIN": str(BIN / "helm")}, capture_output=True, text=True, check=True
    )
    assert minicluster(venv, user, "template", "a", *NAMED).out == ours.stdout
    assert user.run("lint", "--strict", chart).code == 0


def test_kubectl_finds_the_plugin_of_the_wheel(venv: Path, tmp_path: Path) -> None:
    user = User(tmp_path / "home")
    env = user.env | {"PATH": f"{venv}{os.pathsep}{user.env['PATH']}"}
    command = [BIN / "kubectl", "minicluster", "--version"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == (f"kubectl minicluster, version {VERSION}\n", "")
    for words, candidates in (
        (["scale"], ["scale"]),
        (["status", "-o", ""], ["table", "json"]),
        (["wait", "--fr"], []),
    ):
        command = [BIN / "kubectl", "__complete", "minicluster", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
        *lines, directive = done.stdout.splitlines()
        assert ([line.partition("\t")[0] for line in lines], directive) == (candidates, ":4")


def test_plugin_install_and_uninstall_of_the_wheel_can_be_repeated(venv: Path, tmp_path: Path) -> None:
    user = User(tmp_path)
    folder = user.plugins / "minicluster"
    for _ in range(2):
        assert minicluster(venv, user, "plugin", "install") == Done(0, f"installed {folder}\n", "")
    assert ("Job", "a") in by_name(user.ok("template", "a", CHART, *POST))
    assert minicluster(venv, user, "plugin", "uninstall") == Done(0, f"removed {folder}\n", "")
    assert minicluster(venv, user, "plugin", "uninstall") == Done(0, "", "")
    assert user.left() == []


def test_helm_can_uninstall_the_plugin_of_the_wheel(venv: Path, tmp_path: Path) -> None:
    user = User(tmp_path)
    minicluster(venv, user, "plugin", "install")
    user.ok("plugin", "uninstall", "minicluster")
    assert user.left() == []


def test_helm_3_uses_the_wheel_in_path_without_a_plugin(venv: Path, tmp_path: Path) -> None:
    user = User(tmp_path, helm="helm3")
    assert minicluster(venv, user, "plugin", "install") == Done(
        1,
        "",
        "minicluster: helm is Helm 3, which needs no plugin: "
        "`--post-renderer minicluster` works while minicluster is in PATH\n",
    )
    assert user.left() == []
    user.env["PATH"] += f"{os.pathsep}{venv}"
    assert ("Job", "a") in by_name(user.ok("template", "a", CHART, *POST))


@pytest.mark.parametrize(
    ("command", "folder", "text"),
    [
        ("install", "minicluster", "name: minicluster\n"),
        ("uninstall", "minicluster", "# mine\n"),
        ("install", "other", "name: minicluster\n"),
    ],
)
def test_plugin_install_and_uninstall_refuse_a_plugin_of_somebody_else(
    venv: Path, tmp_path: Path, command: str, folder: str, text: str
) -> None:
    user = User(tmp_path)
    path = user.plugins / folder
    path.mkdir(parents=True)
    (path / "plugin.yaml").write_text(text)
    done = minicluster(venv, user, "plugin", command)
    assert (done.code, done.out) == (1, "")
    # Helm may have complained about that plugin before
    assert done.err.splitlines()[-1] == (
        f"minicluster: {path} is another plugin named minicluster: remove it first, by "
        "`helm plugin uninstall minicluster`"
    )
    assert user.left() == [folder]
    assert (path / "plugin.yaml").read_text() == text
