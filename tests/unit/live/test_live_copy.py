"""``minicluster copy``: which side is remote, names of all kinds, what is left out, and errors of tar and kubectl."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from live_kubectl import FORBIDDEN, WAITS, Kubectl, lead, say
from minicluster.exec.copy import split
from status_samples import ended, pod

from tools.clients import Done

NASTY = [
    "a b",
    "é😀",
    "-n",
    "--checkpoint=1",
    "$(id)",
    "a'b\"c",
    "[1]*?",
    "back\\slash",
    "a:b",
    "x" * 200,
    "line\nbreak",
]

REFUSED = FORBIDDEN.format("pods/exec", "create")
BROKEN = "the connection to the pod broke: run it again"


def copied(source: object, target: object, what: str, *before: str) -> Done:
    """Return the success of a copy that says what it did."""
    # a line of ours has no line breaks
    return Done(0, "", say(*before, f"copied {source} to {target}, {what}".replace("\n", " ")))


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    (tmp_path / "tools").mkdir()
    return Kubectl(tmp_path / "tools")


@pytest.fixture
def pod_folder(tmp_path: Path) -> Path:
    """A folder of the lead."""
    (tmp_path / "pod").mkdir()
    return tmp_path / "pod"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the command runs, and in the stand-in also those of the pod."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def tree(folder: Path) -> dict[str, str]:
    """Return the files of a folder and their texts, and its empty folders."""
    paths = [path for path in folder.rglob("*") if path.is_file() or not any(path.iterdir())]
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else "/" for path in paths}


def fill(folder: Path) -> dict[str, str]:
    """Make files with names of all kinds, and an empty folder."""
    for name in NASTY:
        (folder / name).mkdir(parents=True)
        (folder / name / name).write_text(name)
    (folder / "empty").mkdir()
    return tree(folder)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mini:/data", ("mini", "/data")),
        ("mini:a:b", ("mini", "a:b")),
        ("mini:", ("mini", "")),
        ("./mini:a", ("", "./mini:a")),
        ("a/b:c", ("", "a/b:c")),
        (":a", ("", ":a")),
        ("a", ("", "a")),
    ],
)
def test_a_colon_before_any_slash_makes_a_path_remote(text: str, found: tuple[str, str]) -> None:
    assert split(text) == found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("a", "b"), "a and b are both paths here: write one of them as NAME:PATH"),
        (("mini:a", "mini:b"), "mini:a and mini:b are both in a MiniCluster: give a path here for one of them"),
        (("a", "mini:"), "mini: has no path: write one after the colon"),
        (("--all", "mini:/a", "b"), "--all copies to all nodes: mini:/a must be the target, not the source"),
        (("--all", "a", "mini:b"), "--all needs an absolute path, and mini:b has none: write mini:/b"),
    ],
)
def test_paths_that_do_not_fit_are_refused_in_one_line(words: tuple[str, ...], message: str, kubectl: Kubectl) -> None:
    assert kubectl.run("copy", *words) == Done(2, "", say(f"{message}; see `minicluster copy --help`"))


def test_a_local_file_that_does_not_exist_is_refused_before_anything_is_asked(kubectl: Kubectl) -> None:
    assert kubectl.run("copy", "nothing", "mini:/a") == Done(1, "", say("nothing: No such file or directory"))
    assert not (kubectl.folder / "asked").exists()


def test_a_folder_with_names_of_all_kinds_comes_in_and_out(kubectl: Kubectl, here: Path, pod_folder: Path) -> None:
    files = fill(here / "mine")
    (here / "mine" / "link").symlink_to("empty")
    (here / "mine" / "a b" / "run").write_text("")
    (here / "mine" / "a b" / "run").chmod(0o755)
    # a new name; then into a folder that exists
    size = sum(len(name.encode()) for name in NASTY)
    for target, there in ((f"{pod_folder}/new", "new"), (f"{pod_folder}/new/", "new/mine")):
        copy = pod_folder / there
        # with the link and the program
        what = f"{len(NASTY) + 2} files, {size} bytes"
        assert kubectl.run("copy", "mine", f"mini:{target}") == copied("mine", f"mini-0:{copy}", what)
        assert {name: text for name, text in tree(copy).items() if not name.startswith("mine")} == {
            **files,
            "a b/run": "",
            "link": "/",
        }
        assert (copy / "link").readlink() == Path("empty")
        assert os.access(copy / "a b" / "run", os.X_OK)
    (here / "back").mkdir()
    left = "left out, because they are neither files nor folders: ./link"
    for target, there in (("deep/new", "deep/new"), ("back", "back/mine")):
        source, what = f"mini-0:{pod_folder}/new/mine", f"{len(NASTY) + 1} files, {size} bytes"
        assert kubectl.run("copy", f"mini:{pod_folder}/new/mine", target) == copied(source, there, what, left)
        assert tree(here / there) == {**files, "a b/run": ""}
        assert os.access(here / there / "a b" / "run", os.X_OK)


@pytest.mark.parametrize("name", ["--checkpoint=1", "$(id)", "[1]*?", "a:b", "line\nbreak"])
def test_a_file_with_any_name_comes_in_and_out(kubectl: Kubectl, here: Path, pod_folder: Path, name: str) -> None:
    (here / name).write_text("text")
    there = f"mini-0:{pod_folder / name}"
    assert kubectl.run("copy", f"./{name}", f"mini:{pod_folder}") == copied(f"./{name}", there, "4 bytes")
    assert tree(pod_folder) == {name: "text"}
    back = here / f"back {name[:9]}"
    assert kubectl.run("copy", f"mini:{pod_folder}/{name}", str(back)) == copied(there, back, "4 bytes")
    assert back.read_text() == "text"


def test_a_path_without_a_slash_is_relative_to_the_containers_folder_and_no_option(
    kubectl: Kubectl, here: Path
) -> None:
    # the commands of the pod run where the user is
    (here / "mine").write_text("text")
    assert kubectl.run("copy", "mine", "mini:--version") == copied("mine", "mini-0:--version", "4 bytes")
    assert (here / "--version").read_text() == "text"
    assert kubectl.run("copy", "mini:--version", "./-x") == copied("mini-0:--version", "-x", "4 bytes")
    assert (here / "-x").read_text() == "text"
    (here / "sub").mkdir()
    assert kubectl.run("copy", "--", "-x", "mini:sub") == copied("-x", "mini-0:sub/-x", "4 bytes")
    assert (here / "sub" / "-x").read_text() == "text"


def test_links_and_hard_links_of_the_lead_are_copied_as_files_where_that_is_safe(
    kubectl: Kubectl, here: Path, pod_folder: Path
) -> None:
    (pod_folder / "one").write_text("text")
    (pod_folder / "two").hardlink_to(pod_folder / "one")
    (pod_folder / "away").symlink_to("/etc")
    (here.parent / "link").symlink_to(pod_folder)
    left = "left out, because they are neither files nor folders: ./away"
    # the path itself may be a link
    done = copied(f"mini-0:{here.parent}/link", "copied", "2 files, 4 bytes", left)
    assert kubectl.run("copy", f"mini:{here.parent}/link", "copied") == done
    assert tree(here / "copied") == {"one": "text", "two": "text"}
    (here.parent / "link to a file").symlink_to(pod_folder / "one")
    done = copied(f"mini-0:{here.parent}/link to a file", "link to a file", "4 bytes")
    assert kubectl.run("copy", f"mini:{here.parent}/link to a file", ".") == done
    assert (here / "link to a file").read_text() == "text"


def test_pipes_are_left_out(kubectl: Kubectl, here: Path, pod_folder: Path) -> None:
    (here / "mine").mkdir()
    for number in range(7):
        os.mkfifo(here / "mine" / f"pipe{number}")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("mine/socket")
    done = kubectl.run("copy", "mine", f"mini:{pod_folder}")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("minicluster: left out, because they are neither files nor folders: mine/pipe")
    assert done.err.endswith(f" and 3 more\nminicluster: copied mine to mini-0:{pod_folder}/mine, 0 files, 0 bytes\n")
    assert tree(pod_folder) == {"mine": "/"}


def test_what_belongs_to_somebody_here_belongs_to_the_containers_user_there(
    kubectl: Kubectl, here: Path, pod_folder: Path
) -> None:
    (here / "mine").write_text("")
    kubectl.tool("tar", 'cat >"$4/archive"')
    done = copied("mine", f"mini-0:{pod_folder}/mine", "0 bytes")
    assert kubectl.run("copy", "mine", f"mini:{pod_folder}") == done
    listed = subprocess.run(
        ["tar", "-tvf", pod_folder / "archive", "--numeric-owner"], capture_output=True, text=True, check=True
    )
    assert listed.stdout.split()[1] == "0/0"


def test_what_is_not_there_is_named(kubectl: Kubectl, here: Path, pod_folder: Path) -> None:
    path = f"{pod_folder}/nothing"
    missing = f"{path}: there is no such file or folder on the lead"
    assert kubectl.run("copy", f"mini:{path}", "a") == Done(1, "", say(missing))
    (here / "mine").write_text("")
    parent = f"{path}/new: there is no folder {path} on the lead: write {path}/ to make it"
    assert kubectl.run("copy", "mine", f"mini:{path}/new") == Done(1, "", say(parent))


def test_a_target_that_ends_with_a_slash_is_a_folder(kubectl: Kubectl, here: Path, pod_folder: Path) -> None:
    """As in README's lines: in, then out."""
    (here / "in.lj").write_text("text")
    data = pod_folder / "deep" / "data"
    for _ in range(2):
        done = copied("in.lj", f"mini-0:{data}/in.lj", "4 bytes")
        assert kubectl.run("copy", "in.lj", f"mini:{data}/") == done
    assert tree(pod_folder) == {"deep/data/in.lj": "text"}
    there = f"mini-0:{data}"
    assert kubectl.run("copy", f"mini:{data}", "results") == copied(there, "results", "1 file, 4 bytes")
    done = copied(f"{there}/in.lj", "new/dir/in.lj", "4 bytes")
    assert kubectl.run("copy", f"mini:{data}/in.lj", "new/dir/") == done
    done = copied("results", f"mini-0:{pod_folder}/a/results", "1 file, 4 bytes")
    assert kubectl.run("copy", "results", f"mini:{pod_folder}/a/") == done
    assert tree(here) == dict.fromkeys(("in.lj", "results/in.lj", "new/dir/in.lj"), "text")
    (pod_folder / "file").write_text("")
    no_folder = f"{pod_folder}/file/ is a file on the lead, not a folder: remove it, or give another path"
    assert kubectl.run("copy", "in.lj", f"mini:{pod_folder}/file/") == Done(1, "", say(no_folder))
    kubectl.tool("mkdir", 'echo "mkdir: can\'t create directory: no" >&2; exit 1')
    unmade = f"{pod_folder}/b/: mkdir: can't create directory: no"
    assert kubectl.run("copy", "in.lj", f"mini:{pod_folder}/b/") == Done(1, "", say(unmade))


def test_no_file_comes_to_be_where_a_folder_was_meant(kubectl: Kubectl, here: Path, pod_folder: Path) -> None:
    (here / "in.lj").write_text("text")
    data = f"{pod_folder}/data"
    refused = f"there is no {data} on the lead: write {data}/ to make that folder, or {data}/in.lj"
    assert kubectl.run("copy", "in.lj", f"mini:{data}") == Done(1, "", say(refused))
    assert tree(pod_folder) == {}
    # a new name that is a file's, or a file that is there
    assert kubectl.run("copy", "in.lj", f"mini:{data}.lj") == copied("in.lj", f"mini-0:{data}.lj", "4 bytes")
    (pod_folder / "data").write_text("old")
    assert kubectl.run("copy", "in.lj", f"mini:{data}") == copied("in.lj", f"mini-0:{data}", "4 bytes")
    assert tree(pod_folder) == {"data.lj": "text", "data": "text"}
    refused = "there is no results: write results/ to make that folder, or results/data.lj"
    assert kubectl.run("copy", f"mini:{data}.lj", "results") == Done(1, "", say(refused))
    assert kubectl.run("copy", f"mini:{data}", "results") == copied(f"mini-0:{data}", "results", "4 bytes")


def test_a_file_and_a_folder_never_take_each_others_place(kubectl: Kubectl, here: Path, pod_folder: Path) -> None:
    (here / "one").write_text("text")
    (here / "two").mkdir()
    (pod_folder / "one").mkdir()
    (pod_folder / "two").write_text("kept")
    for source, target, there, kind in (
        ("one", f"{pod_folder}", "one", "folder"),
        ("two", f"{pod_folder}/", "two", "file"),
        ("two", f"{pod_folder}/two", "two", "file"),
    ):
        refused = f"{pod_folder}/{there} is a {kind} on the lead: remove it, or give another path"
        assert kubectl.run("copy", source, f"mini:{target}") == Done(1, "", say(refused))
    assert tree(pod_folder) == {"one": "/", "two": "kept"}
    # and here
    for source in ("one", "two"):
        assert kubectl.run("copy", f"mini:{pod_folder}/{source}", ".").code == 1
    assert tree(here) == {"one": "text", "two": "/"}


def test_an_image_without_tar_is_named(kubectl: Kubectl, here: Path) -> None:
    (here / "mine").write_text("")
    kubectl.tool("sh", 'shift; text=$1; shift; PATH=; exec /bin/sh -c "${text#*;}" "$@"')
    why = "container mini of pod mini-0-x has no tar: use an image that has it"
    assert kubectl.run("copy", "mine", "mini:/a") == Done(1, "", say(why))
    assert kubectl.run("copy", "mini:/etc", "a") == Done(1, "", say(why))


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            "echo 'tar: Removing leading x' >&2; echo 'tar: why' >&2; "
            "echo 'tar: Exiting with failure status due to previous errors' >&2; exit 2",
            "tar: why",
        ),
        (f"echo '{REFUSED}' >&2; exit 1", f"{REFUSED}: ask for a Role that allows it"),
        (
            "echo 'tar: ./a: file changed as we read it' >&2; echo 'tar: ./b: Permission denied' >&2; exit 1",
            "tar: ./b: Permission denied",
        ),
        ("echo 'tar: ./a: Cannot stat: No such file' >&2; exit 2", "tar: ./a: Cannot stat: No such file"),
        ("echo 'tar: short read' >&2; exit 1", "a file became shorter while tar read it: run it again"),
        ("exit 1", BROKEN),
        ("exit 0", BROKEN),
    ],
    ids=["tar", "forbidden", "changed and denied", "absent", "short", "silent", "empty"],
)
def test_a_tar_that_fails_is_an_error_of_one_line(kubectl: Kubectl, here: Path, script: str, why: str) -> None:
    (here / "mine").write_text("x" * 500_000)
    kubectl.tool("tar", script)
    assert kubectl.run("copy", "mini:/etc", "a") == Done(1, "", say(f"/etc: {why}"))
    if script != "exit 0":
        assert kubectl.run("copy", "mine", "mini:/tmp") == Done(1, "", say(f"/tmp: {why}"))


#: GNU tar, and what changes the file that it reads
CHANGING = "/bin/tar --sort=name --checkpoint=1 --checkpoint-action=exec='{}' \"$@\""
BUSYBOX = "echo \"tar: {}\" >&2; echo 'tar: error exit delayed from previous errors' >&2; exit 1"


@pytest.mark.parametrize(
    ("script", "warning"),
    [
        (CHANGING.format("echo more >>{0}/log"), "file changed as we read it: ./log"),
        (CHANGING.format(": >{0}/log"), r"file shrank by \d+ bytes; padding with zeros: ./log"),
        (CHANGING.format("rm -f {0}/small"), "file removed before we read it: ./small"),
        ('/bin/tar "$@"; ' + BUSYBOX.format("./a b: No such file or directory"), "no such file or directory: ./a b"),
        ('/bin/tar "$@"; ' + BUSYBOX.format("can't open './a': No such file or directory"), "no .* directory: ./a"),
    ],
    ids=["grows", "shrinks", "goes", "busybox lists", "busybox opens"],
)
def test_a_file_of_the_pod_that_changes_meanwhile_is_copied_with_a_warning(
    kubectl: Kubectl, here: Path, pod_folder: Path, script: str, warning: str
) -> None:
    (pod_folder / "log").write_bytes(b"x" * 1_000_000)
    (pod_folder / "small").write_text("small")
    kubectl.tool("tar", script.format(pod_folder))
    done = kubectl.run("copy", f"mini:{pod_folder}", "a")
    assert (done.code, done.out) == (0, "")
    *told, last = done.err.splitlines()
    # the folder of a file that is removed has changed, too
    assert [line for line in told if re.fullmatch(f"minicluster: warning: {warning}", line)]
    assert re.fullmatch(rf"minicluster: copied mini-0:{pod_folder} to a, [12] files?, 1.0 MB", last)
    assert (here / "a" / "log").stat().st_size == 1_000_000


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ("echo more >>{0}/log", "file changed as we read it: mine/log"),
        (": >{0}/log", "file changed as we read it: mine/log"),
        ("rm {0}/small", "file removed before we read it: mine/small"),
        ("rm -r {0}/other", "file removed before we read it: mine/other"),
    ],
    ids=["grows", "shrinks", "goes", "a folder goes"],
)
def test_a_file_here_that_changes_meanwhile_is_copied_with_a_warning(
    kubectl: Kubectl, here: Path, pod_folder: Path, change: str, warning: str
) -> None:
    (here / "mine" / "other").mkdir(parents=True)
    (here / "mine" / "log").write_bytes(b"x" * 1_000_000)
    (here / "mine" / "small").write_text("small")
    # once the first block is there, the first file is being read, and the pipe takes only a part of it
    first = "dd bs=512 count=1 of=first 2>/dev/null"
    kubectl.tool("tar", f'{first}; {change.format(here / "mine")}; cat first - | /bin/tar "$@"')
    done = kubectl.run("copy", "mine", f"mini:{pod_folder}")
    files = "1 file" if "small" in warning else "2 files"
    said = (f"warning: {warning}", f"copied mine to mini-0:{pod_folder}/mine, {files}, 1.0 MB")
    assert done == Done(0, "", say(*said))
    assert (pod_folder / "mine" / "log").stat().st_size == 1_000_000


@pytest.mark.usefixtures("here")
def test_a_tar_that_was_cut_off_is_an_error(kubectl: Kubectl, pod_folder: Path) -> None:
    (pod_folder / "large").write_bytes(b"x" * 100_000)
    kubectl.tool("tar", '/bin/tar "$@" | head -c 50000')
    why = f"{pod_folder}: {BROKEN}"
    assert kubectl.run("copy", f"mini:{pod_folder}", "a") == Done(1, "", say(why))


@pytest.mark.parametrize("name", ["../outside", "a/../../outside", "/outside"])
def test_an_archive_of_the_lead_can_not_write_elsewhere(
    kubectl: Kubectl, here: Path, pod_folder: Path, name: str
) -> None:
    script = f"""import io, sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
    archive.addfile(tarfile.TarInfo({name!r}))"""
    (kubectl.folder / "evil.py").write_text(script)
    kubectl.tool("tar", f"exec {sys.executable} {kubectl.folder}/evil.py")
    done = kubectl.run("copy", f"mini:{pod_folder}", "a")
    why = f"the pod's tar names {name}, which is outside of what was asked for: look at its image"
    assert done == Done(1, "", say(why))
    assert tree(here) == {}


def test_a_local_file_that_can_not_be_written_is_an_error(kubectl: Kubectl, here: Path, pod_folder: Path) -> None:
    (pod_folder / "one").write_text("")
    (here / "a" / "one").mkdir(parents=True)
    assert kubectl.run("copy", f"mini:{pod_folder}/one", "a/one/one") == copied(
        f"mini-0:{pod_folder}/one", "a/one/one", "0 bytes"
    )
    done = kubectl.run("copy", f"mini:{pod_folder}", "a/one/one")
    assert (done.code, done.err) == (1, say("a/one/one: File exists"))


def test_copy_waits_for_the_lead_as_the_flux_command_does(kubectl: Kubectl, here: Path) -> None:
    (here / "mine").write_text("")
    kubectl.has(pods={"items": [lead(kubectl.folder, WAITS)]})
    done = kubectl.run("copy", "--no-wait", "mine", "mini:/a")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.err.startswith("minicluster: mini is Starting: ")


@pytest.mark.parametrize("code", [0, 1])
def test_all_sends_the_program_that_brings_the_files_to_the_other_nodes(
    kubectl: Kubectl, here: Path, pod_folder: Path, code: int
) -> None:
    (here / "a 'b").write_text("text")
    kubectl.flux(f'shift 3; printf "<%s>" "$@" >&2; grep -o "def main(folder" | head -n 1 >&2; exit {code}')
    worker: dict[str, Any] = pod(1)
    gone: dict[str, Any] = pod(2, ended(1))
    kubectl.has(pods={"items": [lead(kubectl.folder), worker, gone]})
    done = kubectl.run("copy", "--all", "a 'b", f"mini:{pod_folder}")
    said, asked = done.err.split("\n", 1)
    assert said == f"minicluster: copied a 'b to mini-0:{pod_folder}/a 'b, 4 bytes"
    *words, rest = asked.removeprefix("<").split(">")
    words = [word.removeprefix("<") for word in words]
    end = "" if code else say("the other nodes have it, too")
    assert (done.code, done.out, rest) == (code, "", f"def main(folder\n{end}")
    assert words[:2] == [str(pod_folder), "a 'b"]
    assert words[2].startswith("minicluster-")
    assert words[3:] == ["minicluster", "0", "", "mini-0", "mini-1"]
    assert (pod_folder / "a 'b").read_text() == "text"


def test_ctrl_c_gets_to_the_program_that_then_makes_flux_forget_the_files(
    kubectl: Kubectl, here: Path, pod_folder: Path
) -> None:
    (here / "mine").write_text("")
    kubectl.flux("trap 'echo forgotten; exit 130' INT; echo ready; while :; do sleep 0.1; done")
    with kubectl.start("copy", "--all", "mine", f"mini:{pod_folder}") as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    said = say(f"copied mine to mini-0:{pod_folder}/mine, 0 bytes")
    assert (process.returncode, out, err) == (130, "forgotten\n", said)
