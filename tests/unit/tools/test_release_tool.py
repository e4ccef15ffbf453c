"""The release tool sets one version in all files, and writes its notes."""

import datetime
from pathlib import Path

import pytest
import yaml
from support import ROOT

from tools import artifacts, release
from tools.release import PublishError

DAY = datetime.date(2031, 2, 3)
HEAD = "# Changelog\n\n"
CHANGES = f"{HEAD}## [Unreleased]\n\n### Added\n\n- B.\n\n## [0.1.0] - 2030-01-01\n\n- A.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a repository of version 0.1.0."""
    for file in (*release.VERSIONED, *release.NAMING):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        named = file in release.NAMING
        (tmp_path / file).write_text("x:0.1.0 y 0.1.0\n" if named else "name: x\nversion: 0.1.0\nappVersion: 0.1.0\n")
    (tmp_path / release.CHANGELOG).write_text(CHANGES)
    return tmp_path


def files(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_this_repository_has_one_version() -> None:
    version = release.version(ROOT)
    assert [file for file in release.NAMING if version not in (ROOT / file).read_text()] == []


def test_set_version_changes_the_versions_and_the_changelog(root: Path) -> None:
    release.set_version(root, "0.2.0", DAY)
    assert files(root) == {
        **dict.fromkeys(release.VERSIONED, "name: x\nversion: 0.2.0\nappVersion: 0.1.0\n"),
        **dict.fromkeys(release.NAMING, "x:0.2.0 y 0.2.0\n"),
        "CHANGELOG.md": f"{HEAD}## [Unreleased]\n\n## [0.2.0] - 2031-02-03\n\n### Added\n\n- B.\n\n"
        "## [0.1.0] - 2030-01-01\n\n- A.\n",
    }
    assert release.version(root) == "0.2.0"
    assert release.notes(root, "0.2.0") == "### Added\n\n- B.\n"


def test_set_version_writes_the_changes_for_artifact_hub(root: Path) -> None:
    chart = root / release.VERSIONED[0]
    head = "version: 0.1.0\nannotations:\n  a: b\n  artifacthub.io/changes: |\n"
    chart.write_text(f"{head}    - kind: added\n      description: old\n")
    taken = f"A size of 0.5 {'or more ' * 20}is taken"
    changes = f"""
### Added

- **One `thing`**: it is
  "new" ([docs/a.md](docs/a.md)). And more.
- Two, see [docs/b.md](docs/b.md#c).

### Fixed

- {taken}.
"""
    (root / release.CHANGELOG).write_text(f"{HEAD}## [Unreleased]\n{changes}\n## [0.1.0] - 2030-01-01\n\n- A.\n")
    release.set_version(root, "0.2.0", DAY)
    assert max(map(len, chart.read_text().splitlines())) <= 120, "yamllint refuses it"
    annotations = yaml.safe_load(chart.read_text())["annotations"]
    assert yaml.safe_load(annotations.pop("artifacthub.io/changes")) == [
        {"kind": "added", "description": 'One thing: it is "new"'},
        {"kind": "added", "description": "Two, see docs/b.md"},
        {"kind": "fixed", "description": taken},
    ]
    assert annotations == {"a": "b"}


def test_the_chart_has_the_annotation_for_its_changes() -> None:
    text = (ROOT / release.VERSIONED[0]).read_text()
    assert release.CHANGES.search(text)


def test_the_first_release_gets_its_notes_from_unreleased(root: Path) -> None:
    (root / release.CHANGELOG).write_text(f"{HEAD}## [Unreleased]\n\n- A.\n")
    release.set_version(root, "0.1.0", DAY)
    assert (root / release.CHANGELOG).read_text() == f"{HEAD}## [Unreleased]\n\n## [0.1.0] - 2031-02-03\n\n- A.\n"
    assert release.notes(root, "0.1.0") == "- A.\n"


@pytest.mark.parametrize(
    ("new", "changes", "message"),
    [
        ("v0.2.0", CHANGES, "v0.2.0 is not a version of three numbers, such as 0.2.0"),
        ("0.2", CHANGES, "0.2 is not a version of three numbers, such as 0.2.0"),
        ("0.1.0", CHANGES, "CHANGELOG.md has 0.1.0 already: give the next version"),
        ("0.2.0", HEAD, "CHANGELOG.md has nothing under Unreleased: there is nothing to release"),
        (
            "0.2.0",
            f"{HEAD}## [Unreleased]\n\n## [0.1.0] - 2030-01-01\n\n- A.\n",
            "CHANGELOG.md has nothing under Unreleased: there is nothing to release",
        ),
    ],
)
def test_set_version_refuses_a_wrong_version_or_changelog(root: Path, new: str, changes: str, message: str) -> None:
    (root / release.CHANGELOG).write_text(changes)
    before = files(root)
    with pytest.raises(PublishError) as caught:
        release.set_version(root, new, DAY)
    assert str(caught.value) == message
    assert files(root) == before


def test_release_notes_of_another_version_are_refused(root: Path) -> None:
    with pytest.raises(PublishError, match=r"the version is 0\.1\.0, not 0\.2\.0"):
        release.notes(root, "0.2.0")
    (root / release.CHANGELOG).write_text(HEAD)
    with pytest.raises(PublishError, match=r"CHANGELOG.md says nothing of 0\.1\.0"):
        release.notes(root, "0.1.0")


def test_versions_that_differ_are_refused(root: Path) -> None:
    (root / release.VERSIONED[1]).write_text("version: 0.3.0\n")
    with pytest.raises(PublishError, match="the versions differ"):
        release.version(root)


def test_build_refuses_a_folder_that_exists(root: Path) -> None:
    with pytest.raises(PublishError, match="exists: remove it, or give another folder"):
        artifacts.build(root, root)


def test_build_asks_for_a_time_where_there_is_no_commit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(root.parent))
    with pytest.raises(PublishError) as caught:
        artifacts.build(root, root / "dist")
    assert str(caught.value) == f"{root} is not a clone with a commit: set SOURCE_DATE_EPOCH to the time of its files"
    assert not (root / "dist").exists()
