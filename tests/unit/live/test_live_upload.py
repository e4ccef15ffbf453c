"""`minicluster flux --upload`: a folder of this machine goes along with a job."""

import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from live_kubectl import Kubectl, lead
from minicluster.exec import upload
from minicluster.exec.upload import digest_of, files_of, state_of
from status_samples import pod

from tools.clients import Done

#: Runs our programs, but what brings files to nodes; prints the words of other commands, and does in the folder of
#: a job what the file `work` says
FLUX = """folder=${0%/home/*}
case $1${6-} in
pythonminicluster-*) [ ! -e "$folder/fails" ] || { cat "$folder/fails" >&2; exit 1; }; exit ;;
esac
[ "$1" != python ] || { shift; exec python3 "$@"; }
printf '<%s>' "$@"
for word; do case $word in --cwd=*) cd "${word#*=}" || exit ;; esac; done
[ ! -e "$folder/work" ] || . "$folder/work"
"""


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    kubectl = Kubectl(tmp_path)
    kubectl.flux(FLUX)
    return kubectl


def mine() -> Path:
    """Make a folder with files of all kinds."""
    folder = Path("mi ne")
    (folder / "deep").mkdir(parents=True)
    for name in ("train.py", "deep/$(a) 'b", "data.bin"):
        (folder / name).write_text(name)
    (folder / "link").symlink_to("train.py")
    return folder


def digest(folder: Path) -> str:
    return digest_of({name: state_of(path) for name, path in files_of(folder).items()})


def git(*words: str) -> None:
    subprocess.run(["git", "-C", "mi ne", *words], check=True, capture_output=True, timeout=60)


def test_a_folder_is_sent_once_and_again_when_it_has_changed(kubectl: Kubectl, tmp_path: Path) -> None:
    folder = mine()
    words = ("flux", "mini", "--upload", "mi ne", "--", "run", "-N2", "python", "train.py")
    first = kubectl.run(*words)
    place = tmp_path / "home/uploads" / digest(folder)
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
    # the lead has the rest from the state before; what a job has changed there it has not
    (folder / "train.py").write_text("other")
    (place / "mi ne/data.bin").write_text("of a job")
    changed = kubectl.run(*words)
    place = tmp_path / "home/uploads" / digest(folder)
    assert changed.err == f"minicluster: copied mi ne to mini-0:{place}/mi ne, 2 files, 13 bytes\n"
    assert {name: state_of(place / "mi ne" / name) for name in files_of(folder)} == {
        name: state_of(path) for name, path in files_of(folder).items()
    }


NASTY = ["a b", "$(id)", "a'b\"c", "line\nbreak", "é😀", "-n", "[1]*?"]


def test_what_a_job_has_made_or_changed_comes_back(kubectl: Kubectl, tmp_path: Path) -> None:
    folder = mine()
    (folder / "out").mkdir()
    (folder / "away").symlink_to(tmp_path)
    (folder / "mine.py").write_text("sent")
    made = [f"made/{name}.csv" for name in NASTY]
    (tmp_path / "work").write_text(
        "rm away; mkdir -p made out .git away sub; printf x >away/evil.csv; printf x >.git/x.csv\n"
        "printf new >data.bin\n"
        "printf 1 >out/log; printf 2 >sub/deep.csv; printf y >else; ln -s /etc/passwd made/link.csv\n"
        f'printf mine >"{folder.resolve()}/mine.py"; printf theirs >mine.py\n'
        + "".join(f"printf %s {shlex.quote(name)} >{shlex.quote(name)}\n" for name in made)
        + "exit 7\n"
    )
    fetch = ("--fetch", "*.csv", "--fetch", "./out/", "--fetch", "*.bin", "--fetch", "mine.py", "--fetch", "train.py")
    done = kubectl.run("flux", "mini", "--upload", "mi ne", *fetch, "--", "run", "work")
    assert done.code == 7
    outside = f"that could write outside of {folder.resolve()}, or into .git"
    assert done.err.splitlines()[1:] == [
        "minicluster: mine.py of mini-0 is another one than the one here: it is mine.py.mini-0",
        f"minicluster: mini-0: away/evil.csv is not fetched: {outside}",
        f"minicluster: fetched {len(made) + 4} files to {folder.resolve()}",
    ]
    texts = {**{name: name for name in made}, "out/log": "1", "sub/deep.csv": "2", "data.bin": "new", "mine.py": "mine"}
    texts |= {"mine.py.mini-0": "theirs", "train.py": "train.py", "deep/$(a) 'b": "deep/$(a) 'b", "link": "train.py"}
    assert {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()} == texts
    # again: all is there
    again = kubectl.run("flux", "mini", "--upload", "mi ne", "--fetch", "*.txt", "--", "run", "work")
    assert again.err.splitlines()[-1] == "minicluster: nothing new matches *.txt"


def test_more_than_a_bound_is_not_fetched(kubectl: Kubectl, tmp_path: Path) -> None:
    mine()
    (tmp_path / "work").write_text("printf 12345 >large.csv; printf 1 >small.csv\n")
    kubectl.begin_with("import minicluster.exec.uploaded\nminicluster.exec.uploaded.MOST_BYTES = 5\n")
    done = kubectl.run("flux", "mini", "--upload", "mi ne", "--fetch", "*.csv", "--", "run", "work")
    why = "6 bytes match, of at most 5; the largest are large.csv (5 bytes), small.csv (1 bytes)"
    assert done.code == 1
    assert done.err.splitlines()[1:] == [f"minicluster: mini-0-x: {why}: fetch fewer"]
    assert not Path("mi ne/small.csv").exists()


def test_a_stream_that_stands_still_is_given_up_and_the_next_one_goes_on(kubectl: Kubectl, tmp_path: Path) -> None:
    folder = mine()
    (folder / "data.bin").write_bytes(b"x" * 10_000_000)
    kubectl.begin_with("import minicluster.exec.archive\nminicluster.exec.archive.STALLED_SECONDS = 0.5\n")
    # as a kubectl whose connection hangs: it has read something, and reads no more
    (tmp_path / "relay").write_text(
        'case " $* " in *" -xmf "*) dd bs=1 count=10 >/dev/null 2>&1; exec sleep 100 ;; esac'
    )
    words = ("flux", "mini", "--upload", "mi ne", "--", "run", "true")
    begin = time.monotonic()
    done = kubectl.run(*words)
    place = tmp_path / "home/uploads" / digest(folder)
    why = f"minicluster: {place}/: no byte came through for 0.5 s: run it again\n"
    assert (done.code, done.err, time.monotonic() - begin < 30) == (1, why, True)
    (tmp_path / "relay").unlink()
    assert kubectl.run(*words).code == 0


def test_nodes_that_came_later_get_it_too(kubectl: Kubectl) -> None:
    mine()
    words = ("flux", "mini", "--upload", "mi ne", "--", "submit", "true")
    kubectl.run(*words)
    kubectl.has(pods={"items": [lead(kubectl.folder), pod(1)]})
    (kubectl.folder / "fails").write_text("minicluster: mini-1: disk full\n")
    why = "minicluster: mi ne is not on all nodes: mini-1: disk full: run it again\n"
    assert kubectl.run(*words) == Done(1, "", why)
    (kubectl.folder / "fails").unlink()
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
    digests = [digest(folder)]

    def changed() -> None:
        digests.append(digest(folder))

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


#: Notes its words, and installs a package
UV = """printf '%s\\n' "uv $*" >>"${0%/*}/tools"
if [ "$1" = export ]; then while [ $# -gt 1 ]; do shift; done; echo package >"$1"; exit; fi
while [ "$1" != --target ]; do shift; done
[ ! -e "${0%/*}/uv.fails" ] || { echo 'no such package' >&2; exit 1; }
mkdir -p "$2/bin"; echo 'text = "of a package"' >"$2/package.py"
"""
WITH = ("flux", "mini", "--upload", "mi ne", "--with")
USE = ("--", "run", "work")
NO_TOOL = "neither the image nor the view has uv, and the image has no pip: use an image with one of them"


def test_packages_are_installed_once_for_the_jobs(kubectl: Kubectl, tmp_path: Path) -> None:
    folder = mine()
    (folder / "requirements.txt").write_text("package\n")
    kubectl.tool("uv", UV)
    done = kubectl.run(*WITH, "requirements.txt", *USE)
    site = next((tmp_path / "home/uploads").glob("with-*/site"))
    assert done.code == 0
    assert f"<--env=PYTHONPATH={site}" in done.out
    assert f"<--env=PATH={site}/bin:" in done.out
    assert (site / "package.py").exists()
    (folder / "train.py").write_text("other")
    assert kubectl.run(*WITH, "mi ne/requirements.txt", *USE).code == 0
    tools = (tmp_path / "tools").read_text().splitlines()
    assert [line.rpartition(" --target ")[0] for line in tools] == [
        f"uv pip install --quiet --python {shutil.which('python3')}"
    ]
    assert tools[0].endswith(" --requirement ./requirements.txt")
    # a lock is of uv alone
    (folder / "uv.lock").write_text("lock")
    assert kubectl.run(*WITH, "uv.lock", *USE).code == 0
    assert "uv export --quiet --frozen --no-emit-project --project . " in (tmp_path / "tools").read_text()


def test_packages_that_can_not_be_installed_are_told_before_the_job(kubectl: Kubectl, tmp_path: Path) -> None:
    folder = mine()
    for name in ("requirements.txt", "uv.lock"):
        (folder / name).write_text("package\n")
    kubectl.tool("python3", f'[ "$1" != -m ] || exit 1; exec {sys.executable} "$@"')

    def error(*words: str) -> str:
        done = kubectl.run(*WITH, *words, *USE)
        assert (done.code > 0, done.out) == (True, "")
        return done.err.splitlines()[-1]

    if not shutil.which("uv"):
        assert error("requirements.txt") == f"minicluster: requirements.txt is not installed: {NO_TOOL}"
        assert error("uv.lock").startswith("minicluster: uv.lock is not installed: a uv.lock needs uv, which neither")
    kubectl.tool("uv", UV)
    (tmp_path / "uv.fails").write_text("")
    assert error("requirements.txt") == "minicluster: requirements.txt is not installed: no such package"
    assert error("no.txt") == "minicluster: --with: there is no no.txt in the folder of --upload: put it there"
    assert not list((tmp_path / "home/uploads").glob("with-*/site"))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ("--upload", ".", "--", "jobs"),
            "`flux jobs` runs no program: give one of run, alloc, submit, bulksubmit, batch",
        ),
        (("--upload", "no", "--", "run", "true"), "no is no folder here: give one"),
        (
            ("--upload", ".", "--fetch", "x", "--", "submit", "true"),
            "`flux submit` does not wait for its job: give one of run, alloc",
        ),
        (("--fetch", "x", "--", "run", "true"), "it brings back what is new in that folder"),
        (("--with", "x", "--", "run", "true"), "it is a file in that folder"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_asked(
    kubectl: Kubectl, words: tuple[str, ...], error: str
) -> None:
    done = kubectl.run("flux", "mini", *words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.endswith(f": {error}\n")
    assert not (kubectl.folder / "asked").exists()
