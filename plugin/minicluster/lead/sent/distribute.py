"""distribute.py FOLDER NAME KEY BEGIN SECONDS HOST…: brings FOLDER/NAME of the lead to the same place on all nodes.

Those are the nodes that are up; it waits for the hosts for some seconds, and names those whose broker is down then. KEY
is a new name, which Flux knows the files by meanwhile. Each message begins with BEGIN. Ends with 0, or 1 when a node
failed; a signal ends it, and Flux forgets the files too.
Given to `flux python -c` by exec/copy.py. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

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
folder=$1 key=$2 PATH=${PATH:+$PATH:}/usr/bin:/bin
shift 2
[ ! -e "$folder/.$key" ] || exit 0
said=$({ mkdir -p -- "$folder" && flux "$@" "$key" -C "$folder"; } 2>&1) && exit
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


def distribute(folder: str, name: str, key: str, ranks: str, hosts: list[str]) -> list[str]:
    """Bring the files to ranks; return what failed."""
    has_archive = run("archive", "list", "--help")[0] == 0
    (take, forget), get = (ARCHIVE, GET_ARCHIVE) if has_archive else (FILEMAP, GET_FILEMAP)
    mark = Path(folder, f".{key}")
    try:
        mark.touch()
        # what the cache has of files that were mapped before, Flux takes for those of the same content that are mapped
        # now, until it drops them
        run("content", "dropcache")
        code, said = run(*take, key, "-C", folder, f"./{name}")
        if code:
            last = said.strip().rpartition("\n")[2] or "flux failed"
            return [f"{hosts[0]}: {last}"]
        code, said = run("exec", "-n", "-l", "-d", "/", "-r", ranks, "/bin/sh", "-c", EXTRACT, "sh", folder, key, *get)
        return (failures(said, hosts) or [f"flux exec: exit code {code}"]) if code else []
    except OSError as error:
        return [f"{hosts[0]}: {error.filename}: {error.strerror}"]
    finally:
        for number in PASSED_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        run(*forget, key)
        with suppress(OSError):
            mark.unlink()


def main(folder: str, name: str, key: str, begin: str, seconds: str, *wanted: str) -> int:
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
    failed = distribute(folder, name, key, ranks, hosts) if ranks else []
    for line in failed:
        sys.stderr.write(f"{begin}: {line}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
