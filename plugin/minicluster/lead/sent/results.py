"""results.py FOLDER MOST PATTERN…: writes the files in a folder of a node that match to standard output, as tar.

A pattern without a slash is for a name at any depth, one with a slash for the whole path; that of a folder is for all
that is in it. `*` and `?` match no slash, `**` does. Ends with 3 and says why if the files have more than MOST bytes.
Runs with the view's Python, 3.8 or later.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
from pathlib import Path
from typing import Iterator

#: What the parts of a pattern match
PATTERN_PARTS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
TOO_LARGE_CODE, LARGEST_NAMES = 3, 3


def regex_of(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern."""
    text = pattern[2:] if pattern.startswith("./") else pattern
    text = text.rstrip("/")
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", text)
    anywhere = "" if "/" in text else "(?:.*/)?"
    return re.compile(
        anywhere + "".join(PATTERN_PARTS.get(part, re.escape(part)) for part in parts) + "(?:/.*)?", re.DOTALL
    )


def files(folder: Path, patterns: list[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files that match, by their names in a folder: neither links, nor what is git's own."""
    regexes = [regex_of(pattern) for pattern in patterns]
    for above, folders, its in os.walk(str(folder)):
        folders[:] = sorted(each for each in folders if each != ".git")
        for each in sorted(its):
            path = Path(above, each)
            name = str(path.relative_to(folder))
            if any(regex.fullmatch(name) for regex in regexes) and path.is_file() and not path.is_symlink():
                yield name, path


def main(folder: str, most: int, patterns: list[str]) -> int:
    """Write the archive; return the exit code."""
    matching = dict(files(Path(folder), patterns))
    sizes = {name: path.stat().st_size for name, path in matching.items()}
    if sum(sizes.values()) > most:
        largest = sorted(sizes, key=lambda name: -sizes[name])[:LARGEST_NAMES]
        named = ", ".join(f"{name} ({sizes[name]} bytes)" for name in largest)
        sys.stderr.write(f"{sum(sizes.values())} bytes match, of at most {most}; the largest are {named}\n")
        return TOO_LARGE_CODE
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for name, path in matching.items():
            archive.add(str(path), name, recursive=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
