"""uploads.py: takes the files of a folder that a client brings from earlier states of it, and says which are missing.

With the words PLACE and NAME it does so on another node (distribute.py). Without, on the lead, it reads a request, an
object on a line: the ``states`` of the files by their names, in a folder of a ``name`` at a ``place``. The first reply
is ``ready``, then ``alive`` comes again and again, and at last the names that are ``missing``. Old states that no job
needs are removed from all nodes. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import AbstractSet as Set
from typing import Any

#: How many earlier states are looked at, the newest first; bytes of a read; seconds between two signs of life
EARLIER_TIMES, BLOCK_BYTES, ALIVE_SECONDS = 3, 1 << 20, 5.0
#: Bytes of the names of files that have changed, of which no more are sent to the nodes alone
DELTA_BYTES = 100_000
#: Seconds for the removal of old states
REMOVE_SECONDS = 20.0
last = [0.0]


def reply(**what: object) -> None:
    """Write a reply."""
    last[0] = time.monotonic()
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def state_of(path: Path) -> str:
    """Return what a file is (exec/upload.py). Raises OSError."""
    if path.is_symlink():
        return f"link {os.readlink(str(path))}"
    content = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(BLOCK_BYTES), b""):
            content.update(block)
            if time.monotonic() > last[0] + ALIVE_SECONDS:
                reply(alive=True)
    return f"{'program' if os.access(path, os.X_OK) else 'file'} {content.hexdigest()}"


def beside(place: Path, kind: str) -> Path:
    """Return a file beside a place: the states of its files (json), the names that changed (delta), its age (here)."""
    return place.with_name(f"{place.name}.{kind}")


def is_as_it_came(path: Path, _state: str) -> bool:
    """Return whether nobody has changed a file of a place since it came. Raises OSError."""
    place = next(one for one in path.parents if re.fullmatch("[0-9a-f]{20}", one.name))
    return path.lstat().st_ctime_ns <= beside(place, "here").stat().st_ctime_ns


def states_in(folder: Path) -> dict[str, str]:
    """Return the states of a folder's files, as they came."""
    try:
        states: dict[str, str] = json.loads(beside(folder.parent, "json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return states


def take(name: str, state: str, folders: dict[Path, dict[str, str]], target: Path, is_same: Any) -> bool:
    """Copy a file from the first folder that has it in this state; say whether it is there now."""
    for folder, states in folders.items():
        with suppress(OSError):
            # a job may have changed it
            if states.get(name) == state and is_same(folder / name, state):
                if folder != target:
                    (target / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(folder / name, target / name, follow_symlinks=False)
                return True
    return False


def earlier_of(place: Path, name: str) -> list[Path]:
    """Return folders of earlier states, the newest first."""
    others = [path for path in place.parent.glob(f"*/{name}") if path.parent != place] if place.parent.is_dir() else []
    return sorted(others, key=lambda path: -path.parent.stat().st_mtime)[:EARLIER_TIMES]


def unneeded(place: Path, needed: Set[str]) -> list[Path]:
    """Return the folders of old states, without those that are needed."""
    states = [path for path in place.parent.iterdir() if path.is_dir() and re.fullmatch("[0-9a-f]{20}", path.name)]
    old = sorted((path for path in states if path != place), key=lambda path: -path.stat().st_mtime)[EARLIER_TIMES:]
    return [path for path in old if path.name not in needed]


def needed_states(handle: Any) -> set[str]:
    """Return the names of the states in which jobs wait or run. Raises OSError."""
    from flux.job import JobKVSLookup, JobList

    listed = JobList(handle, attrs=[], filters=["active"], user="all", max_entries=0).fetch_jobs().get_jobs()
    ids = [job["id"] for job in listed]
    specs = [job["jobspec"] for job in JobKVSLookup(handle, ids, keys=["jobspec"]).data()] if ids else []
    return {part for spec in specs for part in Path(spec["attributes"]["system"].get("cwd", "/")).parts}


def clean(place: Path) -> None:
    """Remove old states that no job needs, from all nodes. What can't be removed stays."""
    if not (place.parent.is_dir() and unneeded(place, set())):
        return
    import flux

    with suppress(OSError):
        gone = unneeded(place, needed_states(flux.Flux()))
        kinds = ("", ".nodes", ".json", ".here", ".delta")
        paths = [f"{state}{kind}" for state in gone for kind in kinds]
        remove = 'PATH=${PATH:+$PATH:}/usr/bin:/bin; exec rm -rf -- "$@"'
        words = ["flux", "exec", "-n", "-d", "/", "-r", "all", "/bin/sh", "-c", remove, "sh", *paths]
        if paths:
            none = subprocess.DEVNULL
            subprocess.run(words, stdin=none, capture_output=True, check=False, timeout=REMOVE_SECONDS)  # noqa: S603 - words, no shell


def has_state(path: Path, state: str) -> bool:
    """Return whether a file has a state. Raises OSError."""
    with suppress(OSError, StopIteration):
        if is_as_it_came(path, state):
            return True
    return state_of(path) == state


def complete(place: Path, name: str) -> str:
    """Take on a node what has not come from earlier states; return why that is not all."""
    states = states_in(place / name)
    folders = {folder: states_in(folder) for folder in earlier_of(place, name)}
    rest = {each: state for each, state in states.items() if not os.path.lexists(str(place / name / each))}
    taken = (take(each, state, folders, place / name, is_as_it_came) for each, state in rest.items())
    return "" if all(taken) and states else "lacks files"


def main() -> None:
    """Answer one request."""
    reply(ready=True)
    request = json.loads(sys.stdin.readline())
    place, name = Path(request["place"]), request["name"]
    # what a broken stream has left is there, too
    folders = {folder: states_in(folder) for folder in (place / name, *earlier_of(place, name))}
    states = request["states"].items()
    missing = [each for each, state in states if not take(each, state, folders, place / name, has_state)]
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside(place, "json").write_text(json.dumps(request["states"]), encoding="utf-8")
        text = json.dumps(missing)
        if len(missing) < len(states) and len(text) < DELTA_BYTES:
            beside(place, "delta").write_text(text, encoding="utf-8")
    with suppress(subprocess.TimeoutExpired):
        clean(place)
    reply(missing=missing)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(complete(Path(sys.argv[1]), sys.argv[2]) or 0)
    main()
