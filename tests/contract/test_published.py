"""The folder of a release: its files, their checksums, what they are made of, and that they can be made again."""

import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import requires, version
from pathlib import Path

import pytest
import yaml
from newcomer import VERSION, User, build, need_wheels
from packaging.requirements import Requirement
from support import CHART, PACKAGE, ROOT, tool

# one worker builds them again, and unpacks them
pytestmark = pytest.mark.xdist_group("packages")
ARCHIVE, SBOM = f"minicluster-{VERSION}.tgz", f"minicluster-{VERSION}.cdx.json"
PINS, VEX = f"minicluster-{VERSION}-requirements.txt", f"minicluster-{VERSION}.openvex.json"
WHEEL, SOURCE = f"minicluster-{VERSION}-py3-none-any.whl", f"minicluster-{VERSION}.tar.gz"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_build_makes_these_files(built: Path) -> None:
    assert set(files(built)) == {f"chart/{ARCHIVE}", ARCHIVE, WHEEL, SOURCE, PINS, SBOM, VEX, "SHA256SUMS"}


def test_the_checksums_are_those_of_all_other_files(built: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=built, capture_output=True, text=True, check=True
    )
    assert sorted(done.stdout.splitlines()) == sorted(f"{name}: OK" for name in files(built) if name != "SHA256SUMS")


def step(job: str, name: str) -> str:
    """Return the script of a step of the release's workflow."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yaml").read_text())["jobs"]
    [script] = [one["run"] for one in jobs[job]["steps"] if one.get("name", "").startswith(name)]
    return str(script)


def test_the_workflow_publishes_these_files(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "dist")
    (tmp_path / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "gh").chmod(0o755)
    env = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "GITHUB_REF_NAME": f"v{VERSION}"}
    script = step("publish", "Files") + step("publish", "Release on GitHub")
    bash = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(bash, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert set(files(tmp_path / "python")) == {WHEEL, SOURCE}
    assets = {ARCHIVE, WHEEL, SOURCE, PINS, SBOM, VEX, "SHA256SUMS"}
    assert {word for word in done.stdout.splitlines() if word.startswith("dist/")} == {
        f"dist/{name}" for name in assets
    }


def test_artifact_hub_gets_its_id_of_the_repository() -> None:
    """Artifact Hub, "Repositories guide": the file may have repositoryID, owners and ignore."""
    fill = step("publish", "Artifact Hub").splitlines()[0].partition(" >")[0]
    env = {**os.environ, "ARTIFACTHUB_ID": "0d7b4b8e-5c1c-4c6b-9d0a-3b0c7e6f2a11"}
    if not shutil.which("envsubst"):
        pytest.skip("envsubst is missing: install gettext-base")
    done = subprocess.run(["bash", "-c", fill], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert yaml.safe_load(done.stdout) == {"repositoryID": env["ARTIFACTHUB_ID"]}


# What they contain -------------------------------------------------------------------------------------------


def chart_files(names: list[str], prefix: str) -> set[str]:
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix) and not name.endswith("/")}


def test_each_package_has_the_whole_chart(built: Path) -> None:
    chart = {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}
    with zipfile.ZipFile(built / WHEEL) as wheel:
        assert chart_files(wheel.namelist(), "minicluster/chart/") == chart
    for archive, prefix in (
        (SOURCE, f"minicluster-{VERSION}/charts/minicluster/"),
        (ARCHIVE, "minicluster/minicluster/chart/"),
    ):
        with tarfile.open(built / archive) as tar:
            assert chart_files([m.name for m in tar if m.isfile()], prefix) == chart
            assert [m.name for m in tar if m.issym() or "__pycache__" in m.name] == []
    with tarfile.open(built / "chart" / ARCHIVE) as tar:
        assert chart_files(tar.getnames(), "minicluster/") == chart


def test_the_wheel_and_the_archives_have_the_templates_of_texts(built: Path) -> None:
    templates = {str(path.relative_to(ROOT / "plugin")) for path in PACKAGE.rglob("*.j2")}
    assert templates
    with zipfile.ZipFile(built / WHEEL) as wheel:
        assert templates <= set(wheel.namelist())
    for archive, prefix in ((SOURCE, f"minicluster-{VERSION}/plugin/"), (ARCHIVE, "minicluster/")):
        with tarfile.open(built / archive) as tar:
            assert {prefix + name for name in templates} <= set(tar.getnames())


# What they need ----------------------------------------------------------------------------------------------


def normal(name: str) -> str:
    """Return a package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def direct(name: str) -> list[str]:
    """Return the packages that a package itself needs here."""
    wanted = [Requirement(text) for text in requires(name) or []]
    return [normal(r.name) for r in wanted if not r.marker or r.marker.evaluate({"extra": ""})]


def needed(name: str) -> dict[str, str]:
    """Return the versions of the packages that a package needs here."""
    return {k: v for one in direct(name) for k, v in {one: version(one), **needed(one)}.items()}


def pins(text: str) -> dict[str, str]:
    """Return the versions that a file of requirements pins here; each pin must have a hash."""
    lines = re.sub(r"^ *#.*\n", "", text.replace("\\\n", ""), flags=re.MULTILINE).splitlines()
    found = [re.split(r"\s+(?=--hash=sha256:[0-9a-f]{64}\b)", line.strip()) for line in lines]
    assert [words[0] for words in found if len(words) < 2] == []
    wanted = [Requirement(words[0]) for words in found]
    return {normal(r.name): str(r.specifier).removeprefix("==") for r in wanted if not r.marker or r.marker.evaluate()}


def test_what_the_package_needs_is_pinned_by_version_and_hash(built: Path) -> None:
    plugin = pins((ROOT / "plugin" / "requirements.txt").read_text())
    assert plugin == needed("minicluster")
    assert pins((built / PINS).read_text()) == plugin | {"minicluster": VERSION}
    everything = pins((ROOT / "tools" / "requirements.txt").read_text())
    assert plugin == {name: everything[name] for name in plugin}


def test_the_sbom_lists_what_the_package_needs_and_nothing_of_its_build(built: Path) -> None:
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415 - two seconds

    text = (built / SBOM).read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    assert "serialNumber" not in bill
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert tempfile.gettempdir() not in text
    own = bill["metadata"]["component"]
    assert (own["name"], own["version"]) == ("minicluster", VERSION)
    listed = {one["purl"]: one["bom-ref"] for one in bill["components"]}
    assert set(listed) == {f"pkg:pypi/{name}@{number}" for name, number in needed("minicluster").items()}
    edges = {one["ref"]: set(one.get("dependsOn", [])) for one in bill["dependencies"]}
    assert edges[own["bom-ref"]] == {listed[f"pkg:pypi/{one}@{version(one)}"] for one in direct("minicluster")}


def test_the_openvex_file_says_what_is_true_of_the_package(built: Path) -> None:
    """The fields that the specification requires (github.com/openvex/spec, OPENVEX-SPEC.md)."""
    document = json.loads((built / VEX).read_text())
    assert {"@context", "@id", "author", "timestamp", "version", "statements"} == set(document)
    assert document["timestamp"] == "2023-11-14T22:13:20+00:00"
    for statement in document["statements"]:
        assert re.fullmatch(r"CVE-\d{4}-\d+", statement["vulnerability"]["name"])
        [product] = statement["products"]
        assert product == {"@id": f"pkg:pypi/minicluster@{VERSION}", "subcomponents": [{"@id": "pkg:pypi/jinja2"}]}
        assert (statement["status"], bool(statement["justification"])) == ("not_affected", True)
    texts = [path.read_text() for path in PACKAGE.rglob("*") if path.suffix in (".py", ".j2")]
    assert [text for text in texts if re.search(r"xmlattr|Sandbox|from_string", text)] == []


# Made again --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a key and return its folder, with the files `secret.gpg` and `public.gpg`."""
    if not shutil.which("gpg"):
        pytest.skip("gpg is missing: it makes the key that signs")
    folder = tmp_path_factory.mktemp("gpg")
    folder.chmod(0o700)
    gpg = ["gpg", "--homedir", str(folder), "--batch", "--pinentry-mode", "loopback", "--passphrase", ""]
    subprocess.run([*gpg, "--quick-generate-key", "tester", "rsa2048"], check=True, capture_output=True)
    for kind, name in (("--export-secret-keys", "secret.gpg"), ("--export", "public.gpg")):
        (folder / name).write_bytes(subprocess.run([*gpg, kind], check=True, capture_output=True).stdout)
    yield folder
    subprocess.run(["gpgconf", "--homedir", folder, "--kill", "gpg-agent"], check=False, capture_output=True)


@pytest.fixture(scope="module")
def again(keyring: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build and sign in another place, from files with other times and modes; return the folder."""
    if not tool("helm"):
        pytest.skip("helm is missing: run `make tools`")
    need_wheels()
    root = tmp_path_factory.mktemp("copy")
    for name in ("charts", "plugin"):
        shutil.copytree(ROOT / name, root / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, root / name)
    for path in (p for p in root.rglob("*") if p.is_file() and not p.is_symlink()):
        path.chmod(path.stat().st_mode & 0o700)
        os.utime(path, (10**9, 10**9))
    return build(root / "dist", "--key=tester", f"--keyring={keyring / 'secret.gpg'}", root=root)


def test_a_build_from_another_copy_gives_the_same_bytes(built: Path, again: Path) -> None:
    """`pip install .` in a clone makes the same wheel as the source archive, too: here the clone has a link."""
    second = files(again)
    signatures = {name for name in second if name.endswith(".prov")}
    assert signatures == {f"{ARCHIVE}.prov", f"chart/{ARCHIVE}.prov"}
    lines = [line for line in second["SHA256SUMS"].decode().splitlines() if not line.endswith(".prov")]
    assert lines == (built / "SHA256SUMS").read_text().splitlines()
    assert {k: v for k, v in second.items() if k not in signatures | {"SHA256SUMS"}} == {
        k: v for k, v in files(built).items() if k != "SHA256SUMS"
    }


def test_a_signed_archive_is_verified(again: Path, keyring: Path, tmp_path: Path) -> None:
    helm, public = User(tmp_path), keyring / "public.gpg"
    helm.ok("verify", again / "chart" / ARCHIVE, "--keyring", public)
    plugin = Path(shutil.copy(again / ARCHIVE, tmp_path))
    shutil.copy(again / f"{ARCHIVE}.prov", tmp_path)
    helm.ok("plugin", "verify", plugin, "--keyring", public)
    plugin.write_bytes(plugin.read_bytes() + b"\0")
    assert "sha256 sum does not match" in helm.run("plugin", "verify", plugin, "--keyring", public).err
