"""`minicluster flux --upload`: a folder of this machine goes along with a job."""

import re
import subprocess
from pathlib import Path

import pytest
from live_kubectl import Kubectl, lead
from minicluster.exec import upload
from minicluster.exec.upload import digest_of, files_of
from status_samples import pod

from tools.clients import Done


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    kubectl = Kubectl(tmp_path)
    kubectl.flux("""printf '<%s>' "$@"\n""")
    return kubectl


def mine() -> Path:
    """Make a folder with files of all kinds."""
    folder = Path("mi ne")
    (folder / "deep").mkdir(parents=True)
    for name in ("train.py", "deep/$(a) 'b", "data.bin"):
        (folder / name).write_text(name)
    (folder / "link").symlink_to("train.py")
    return folder


def git(*words: str) -> None:
    subprocess.run(["git", "-C", "mi ne", *words], check=True, capture_output=True, timeout=60)


def test_a_folder_is_sent_once_and_again_when_it_has_changed(kubectl: Kubectl, tmp_path: Path) -> None:
    folder = mine()
    words = ("flux", "mini", "--upload", "mi ne", "--", "run", "-N2", "python", "train.py")
    first = kubectl.run(*words)
    place = tmp_path / "home/uploads" / digest_of(files_of(folder))
    said = Done(first.code, re.sub("<--setattr=[^>]*>", "", first.out), first.err)
    assert said == Done(
        0,
        f"<run><--cwd={place}/mi ne><-N2><python><train.py>",
        f"minicluster: copied mi ne to mini-0:{place}/mi ne, 4 files, 28 bytes\n",
    )
    there = sorted(str(path.relative_to(place / "mi ne")) for path in (place / "mi ne").rglob("*") if not path.is_dir())
    assert there == sorted(["train.py", "deep/$(a) 'b", "data.bin", "link"])
    again = kubectl.run(*words)
    assert (again.code, again.err, f"<--cwd={place}/mi ne>" in again.out) == (0, "", True)
    (folder / "train.py").write_text("other")
    assert str(place) not in kubectl.run(*words).out


def test_nodes_that_came_later_get_it_too(kubectl: Kubectl) -> None:
    mine()
    words = ("flux", "mini", "--upload", "mi ne", "--", "submit", "true")
    kubectl.run(*words)
    kubectl.has(pods={"items": [lead(kubectl.folder), pod(1)]})
    assert "--cwd" in kubectl.run(*words).out


def test_what_git_ignores_stays_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = mine()
    (folder / ".gitignore").write_text("*.bin\n")
    everything = {".gitignore", "train.py", "deep/$(a) 'b", "data.bin", "link"}
    assert files_of(folder).keys() == everything
    git("init", "-q")
    assert files_of(folder).keys() == everything - {"data.bin"}
    git("add", "-f", "data.bin")
    assert files_of(folder).keys() == everything
    # of git, and not there
    (folder / "train.py").unlink()
    (folder / "link").unlink()
    assert files_of(folder).keys() == everything - {"train.py", "link"}


def test_a_name_a_content_and_a_mode_make_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = mine()
    digests = [digest_of(files_of(folder))]

    def changed() -> None:
        digests.append(digest_of(files_of(folder)))

    (folder / "train.py").chmod(0o755)
    changed()
    (folder / "train.py").rename(folder / "eval.py")
    changed()
    (folder / "eval.py").write_text("x")
    changed()
    (folder / "link").unlink()
    (folder / "link").symlink_to("eval.py")
    changed()
    assert len(set(digests)) == len(digests) == 5


def test_a_large_folder_is_told_with_its_largest_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder, said = mine(), list[str]()
    upload._warn("x", files_of(folder), said.append)
    monkeypatch.setattr(upload, "LARGE_BYTES", 20)
    upload._warn("x", files_of(folder), said.append)
    assert re.sub(r" \(\d+ bytes\)", "", said[0]) == (
        "warning: x has 36 bytes, which all nodes get; the largest are deep/$(a) 'b, data.bin, link"
    )
    assert len(said) == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ("--upload", ".", "--", "jobs"),
            "`flux jobs` runs no program: give one of run, alloc, submit, bulksubmit, batch",
        ),
        (("--upload", "no", "--", "run", "true"), "no is no folder here: give one"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_asked(
    kubectl: Kubectl, words: tuple[str, ...], error: str
) -> None:
    assert kubectl.run("flux", "mini", *words) == Done(2, "", f"minicluster: --upload: {error}\n")
    assert not (kubectl.folder / "asked").exists()
