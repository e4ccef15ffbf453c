"""distribute.py FOLDER NAME KEY BEGIN SECONDS TAKE HOST…: brings FOLDER/NAME of the lead to the same place on nodes.

Those are the nodes that are up; it waits for the hosts for some seconds, and names those whose broker is down then. KEY
is a new name, which Flux knows the files by meanwhile. Each message begins with BEGIN. TAKE is uploads.py where the
folder is an upload: then nodes that have it are left alone, and of one that has changed a node that has the rest gets
the changes alone. Ends with 0, or 1 when a node failed; a signal ends it, and Flux forgets the files too.
Given to `flux python -c` by exec/copy.py. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import flux
from flux.hostlist import Hostlist
from flux.idset import IDset

#: How Flux gets the files of the lead, and forgets them: since flux-core 0.60 by `archive`, before by `filemap`.
#: They are mapped: what is stored stays in Flux's database, even after its archive was removed
ARCHIVE = (("archive", "create", "--mmap", "-n"), ("archive", "remove", "-f", "-n"))
FILEMAP = (("filemap", "map", "-T"), ("filemap", "unmap", "-T"))
#: How a node gets them: the words after the folder and the key are those of flux. Prints the last line of an error.
#: A folder with the lead's mark is the lead's own, on a volume. There the files are already, and must not be replaced
#: while the lead's broker has them mapped
EXTRACT = """\
folder=$1 key=$2 place=$3 name=$4 take=$5 PATH=${PATH:+$PATH:}/usr/bin:/bin
shift 5
[ ! -e "$folder/.$key" ] && { [ ! "$place" ] || [ ! -e "$place.here" ]; } || exit 0
bring() {
  # what a broken connection has left may be a part
  [ ! "$take" ] || rm -rf -- "$place"
  mkdir -p -- "$folder" && flux "$@" "$key" -C "$folder" || return
  [ ! "$take" ] || flux python -c "$take" "$place" "$name" || return
  [ ! "$place" ] || : >"$place.here"
}
said=$(bring "$@" 2>&1) && exit
echo "failed: ${said##*
}" >&2
exit 1
"""
#: The key may come late to a node, says flux-archive(1)
GET_ARCHIVE = ("archive", "extract", "--overwrite", "--waitcreate=60s", "-n")
GET_FILEMAP = ("filemap", "get", "-T")
#: The line of a node; that of flux exec about a node; that at the end about all ranks that ended alike
LINE_PATTERNS = (r"(\d+): failed: (.*)", r"flux-exec: Error: rank (\d+): (.*)", r"\[?([\d,-]+)\]?: (.*)")
#: Between two looks
ONLINE_POLL_SECONDS = 0.1
PASSED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end(number: int, _frame: Any) -> NoReturn:
    """End for a signal, with the exit code that a shell would give."""
    raise SystemExit(128 + number)


def run(*words: str) -> tuple[int, str]:
    """Run flux to its end, and return its exit code and its standard error. `flux python` has put it in PATH."""
    done = subprocess.run(  # noqa: S603 - words, no shell
        ["flux", *words],  # noqa: S607
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stderr.decode(errors="replace")


def failures(text: str, hosts: list[str]) -> list[str]:
    """Return why nodes failed, from what flux exec printed: a line for all that failed alike."""
    reasons: dict[int, str] = {}
    for pattern in LINE_PATTERNS:
        for line in text.split("\n"):
            match = re.fullmatch(pattern, line)
            if match:
                for rank in IDset(match[1]):
                    reasons.setdefault(rank, match[2])
    failed: dict[str, list[str]] = {}
    for rank, why in sorted(reasons.items()):
        failed.setdefault(why, []).append(hosts[rank])
    return [f"{Hostlist(names).encode()}: {why}" for why, names in failed.items()]


def bring_upload(  # noqa: PLR0913, PLR0917 - what, and to where
    place: Path, name: str, key: str, ranks: str, hosts: list[str], take: str
) -> list[str]:
    """Bring an upload to ranks; return what failed."""
    here, delta = place.with_name(f"{place.name}.here"), place.with_name(f"{place.name}.delta")
    if not here.exists():
        here.touch()
    with suppress(OSError, ValueError):
        changed = [f"./{place.name}/{name}/{one}" for one in json.loads(delta.read_text(encoding="utf-8"))]
        files = [f"./{place.name}.json", *changed]
        if ranks and not distribute(str(place.parent), files, f"{key}-delta", ranks, hosts, (str(place), name, take)):
            return []
    for number in PASSED_SIGNALS:
        signal.signal(number, end)
    manifest = [f"./{place.name}.json"] if place.with_name(f"{place.name}.json").exists() else []
    files = [f"./{place.name}/{name}", *manifest]
    # the nodes that have it by now are left alone
    return distribute(str(place.parent), files, key, ranks, hosts, (str(place), name, "")) if ranks else []


def distribute(  # noqa: PLR0913, PLR0917 - what, and to where
    folder: str, files: list[str], key: str, ranks: str, hosts: list[str], what: tuple[str, str, str] = ("", "", "")
) -> list[str]:
    """Bring files in a folder to ranks; return what failed. ``what`` are the place of an upload, its name and TAKE."""
    has_archive = run("archive", "list", "--help")[0] == 0
    (take, forget), get = (ARCHIVE, GET_ARCHIVE) if has_archive else (FILEMAP, GET_FILEMAP)
    mark = Path(folder, f".{key}")
    try:
        mark.touch()
        # what the cache has of files that were mapped before, Flux takes for those of the same content that are mapped
        # now, until it drops them
        run("content", "dropcache")
        code, said = run(*take, key, "-C", folder, *files)
        if code:
            last = said.strip().rpartition("\n")[2] or "flux failed"
            return [f"{hosts[0]}: {last}"]
        code, said = run(
            "exec", "-n", "-l", "-d", "/", "-r", ranks, "/bin/sh", "-c", EXTRACT, "sh", folder, key, *what, *get
        )
        return (failures(said, hosts) or [f"flux exec: exit code {code}"]) if code else []
    except OSError as error:
        return [f"{hosts[0]}: {error.filename}: {error.strerror}"]
    finally:
        for number in PASSED_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        run(*forget, key)
        with suppress(OSError):
            mark.unlink()


def main(folder: str, name: str, key: str, begin: str, seconds: str, take: str, *wanted: str) -> int:  # noqa: PLR0913, PLR0917 - words
    """Do all, and return the exit code."""
    for number in PASSED_SIGNALS:
        signal.signal(number, end)
    handle = flux.Flux()
    hosts = list(Hostlist(handle.attr_get("hostlist")))
    last = time.monotonic() + float(seconds)
    while True:
        online = set(IDset(handle.rpc("groups.get", {"name": "broker.online"}, 0).get()["members"]))
        names = {hosts[rank] for rank in online}
        if names.issuperset(wanted) or time.monotonic() >= last:
            break
        time.sleep(ONLINE_POLL_SECONDS)
    down = [host for host in wanted if host not in names]
    if down:
        sys.stderr.write(f"{begin}: {Hostlist(down).encode()}: down, so the files are not there\n")
    ranks = ",".join(str(rank) for rank in sorted(online - {0}))
    if take:
        failed = bring_upload(Path(folder), name, key, ranks, hosts, take)
    else:
        failed = distribute(folder, [f"./{name}"], key, ranks, hosts) if ranks else []
    for line in failed:
        sys.stderr.write(f"{begin}: {line}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
