"""Copies the parts of a Flux view that running Flux needs: ``view.py DESTINATION FOLDER…``.

Most files of a Spack view only serve to build software with it, and the view has a link to each file of the software.
To create a file or link takes a file system longer than to write its data, so this creates few. Runs with the Python of
the view, 3.8 or later.
"""

# ruff: noqa: PTH102, PTH112, PTH118, PTH119, PTH120, PTH123, PTH211 - ten thousand paths, which take half the time as texts

from __future__ import annotations

import os
import re
import struct
import sys
from typing import NamedTuple

#: Paths that are not copied: headers, documentation, translations, static libraries, Spack's records, the parts of
#: Python that no program of Flux imports, its byte code for -O and -OO, and terminals that `flux top` rarely meets
LEFT_OUT = re.compile(
    r"""/(
      include | \.spack
    | share/(aclocal|doc|gtk-doc|info|locale|man)
    | share/terminfo/[^lstvx]
    | (lib|lib64|share)/(cmake|pkgconfig)
    | lib/python3\.\d+/(config-[^/]+|ensurepip|idlelib|lib2to3|tkinter|turtledemo)
    | lib/python3\.\d+/site-packages/(pip|setuptools|pkg_resources|_distutils_hack|distutils-precedence\.pth)
    | lib/python3\.\d+/((?!site-packages/)[^/]+/)?tests?
    )$
    | \.(a|la|opt-[12]\.pyc)$""",
    re.VERBOSE,
)
#: The headers of a 64-bit ELF file of this machine's byte order, and of a section: System V ABI, chapter 4
ELF = struct.Struct("16x HHI QQQ IHHHHHH")
SECTION = struct.Struct("IIQQQQIIQQ")
ELF_MAGIC = b"\x7fELF\x02" + (b"\x01" if sys.byteorder == "little" else b"\x02")


def parts(file: int, size: int) -> list[tuple[int, int]]:
    """Return the parts of an open file to copy, as (begin, end): all but the debug information (DWARF) of a program."""
    head = os.pread(file, ELF.size, 0)
    if len(head) < ELF.size or not head.startswith(ELF_MAGIC):
        return [(0, size)]
    *_, table, _, _, _, _, _, count, names = ELF.unpack(head)
    if names >= count or table + count * SECTION.size > size:
        return [(0, size)]
    sections = list(SECTION.iter_unpack(os.pread(file, count * SECTION.size, table)))
    _, _, _, _, offset, length, *_ = sections[names]
    texts = os.pread(file, length, offset) if offset + length <= size else b""
    cuts, begin = [], 0
    for name, _, _, _, offset, length, *_ in sorted(sections, key=lambda section: section[4]):
        if texts.startswith(b".debug_", name) and begin <= offset and offset + length <= size:
            cuts.append((begin, offset))
            begin = offset + length
    return [*cuts, (begin, size)]


def copy_file(source: str, target: str) -> None:
    """Copy a file with its mode and time: Python takes byte code by the time of its source. Raises OSError."""
    with open(source, "rb", buffering=0) as read, open(target, "xb", buffering=0) as written:
        status = os.fstat(read.fileno())
        for begin, end in parts(read.fileno(), status.st_size):
            at = written.seek(begin)
            while at < end:
                sent = os.sendfile(written.fileno(), read.fileno(), at, end - at)
                if not sent:
                    raise OSError(f"{source} became shorter")
                at += sent
        # the part that is left out may be the end
        written.truncate(status.st_size)
        os.fchmod(written.fileno(), status.st_mode)
        os.utime(written.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


class Folder(NamedTuple):
    """The parts of a folder to copy."""

    path: str
    links: dict[str, str]  #: by name: the target of a link
    files: list[str]
    folders: list[Folder]


def read(path: str, roots: tuple[str, ...]) -> Folder:
    """Read a folder below one of the roots, which are the folders to copy. Raises OSError."""
    tree = Folder(path, {}, [], [])
    with os.scandir(path) as entries:
        for entry in entries:
            if LEFT_OUT.search(entry.path):
                continue
            if entry.is_symlink():
                tree.links[entry.name] = os.readlink(entry.path)
            elif entry.is_dir():
                inner = read(entry.path, roots)
                origin = repeated(inner, roots)
                if origin:
                    tree.links[entry.name] = origin
                else:
                    tree.folders.append(inner)
            else:
                tree.files.append(entry.name)
    return tree


def repeated(folder: Folder, roots: tuple[str, ...]) -> str | None:
    """Return the folder to whose entries this one has a link each, and nothing else; None if there is none."""
    if folder.files or folder.folders:
        return None
    targets = [os.path.normpath(os.path.join(folder.path, target)) for target in folder.links.values()]
    origins = {os.path.dirname(target) for target in targets}
    if len(origins) != 1 or [os.path.basename(target) for target in targets] != list(folder.links):
        return None
    origin = origins.pop()
    if not any(origin.startswith(f"{root}/") for root in roots) or not os.path.isdir(origin):
        return None
    with os.scandir(origin) as entries:
        names = {entry.name for entry in entries if not LEFT_OUT.search(entry.path)}
    return origin if names == set(folder.links) else None


def write(folder: Folder, target: str) -> None:
    """Write the copy of a folder. Raises OSError."""
    os.mkdir(target)
    for name, link in folder.links.items():
        os.symlink(link, f"{target}/{name}")
    for name in folder.files:
        copy_file(f"{folder.path}/{name}", f"{target}/{name}")
    for inner in folder.folders:
        write(inner, f"{target}/{os.path.basename(inner.path)}")


def main(destination: str, *folders: str) -> None:
    """Copy folders. Ends the program with a line that says what failed."""
    try:
        for folder in folders:
            write(read(folder, folders), f"{destination}/{os.path.basename(folder)}")
    except OSError as error:
        sys.exit(f"minicluster: the view was not copied: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
