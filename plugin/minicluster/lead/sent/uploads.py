"""uploads.py: takes the files of a folder that a client brings from earlier states of it, and says which are missing.

Reads a request, an object on a line: the ``states`` of the files by their names, in a folder of a ``name`` at a
``place``. The first reply is ``ready``, then ``alive`` comes again and again, and at last the names that are
``missing``. Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

#: How many earlier states are looked at, the newest first; bytes of a read; seconds between two signs of life
EARLIER_TIMES, BLOCK_BYTES, ALIVE_SECONDS = 3, 1 << 20, 5.0
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


def take(name: str, state: str, folders: list[Path], target: Path) -> bool:
    """Copy a file from the first folder that has it in this state; say whether it is there now."""
    for folder in folders:
        with suppress(OSError):
            if state_of(folder / name) == state:
                if folder != target:
                    (target / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(folder / name, target / name, follow_symlinks=False)
                return True
    return False


def earlier_of(place: Path, name: str) -> list[Path]:
    """Return folders of earlier states, the newest first."""
    others = [path for path in place.parent.glob(f"*/{name}") if path.parent != place] if place.parent.is_dir() else []
    return sorted(others, key=lambda path: -path.parent.stat().st_mtime)[:EARLIER_TIMES]


def main() -> None:
    """Answer one request."""
    reply(ready=True)
    request = json.loads(sys.stdin.readline())
    place, name = Path(request["place"]), request["name"]
    # what a broken stream has left is there, too
    folders = [place / name, *earlier_of(place, name)]
    states = request["states"].items()
    reply(missing=[each for each, state in states if not take(each, state, folders, place / name)])


if __name__ == "__main__":
    main()
