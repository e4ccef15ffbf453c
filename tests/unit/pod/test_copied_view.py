"""A copied view has whole files, programs without debug information, and one link for a folder of links."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import view
from hypothesis import given
from hypothesis import strategies as st

NAMES = [b"", b".text", b".debug_info", b".debug_line", b".data", b".shstrtab"]


def program(*contents: bytes, names: list[bytes] = NAMES, index: int | None = None) -> bytes:
    """Return an ELF file with a section of each content, between the null section and that of the names."""
    texts = b"\0".join(names) + b"\0"
    body, sections, at = b"", [(0, 0)], view.ELF.size
    for content in [*contents, texts]:
        sections.append((at + len(body), len(content)))
        body += content
    last = len(sections) - 1 if index is None else index
    head = view.ELF.pack(3, 62, 1, 0, 0, at + len(body), 0, at, 0, 0, view.SECTION.size, len(sections), last)
    table = [
        view.SECTION.pack(texts.index(name) if name else len(texts) - 1, 1, 0, 0, offset, length, 0, 0, 1, 0)
        for name, (offset, length) in zip(names, sections, strict=True)
    ]
    start: bytes = view.ELF_MAGIC + head[len(view.ELF_MAGIC) :]
    return start + body + b"".join(table)


def copied(tmp_path: Path, content: bytes) -> bytes:
    (tmp_path / "source").write_bytes(content)
    view.copy_file(str(tmp_path / "source"), str(tmp_path / "copy"))
    return (tmp_path / "copy").read_bytes()


def test_a_program_is_copied_without_its_debug_information(tmp_path: Path) -> None:
    content = program(b"text", b"information", b"lines", b"data")
    assert copied(tmp_path, content) == program(b"text", bytes(11), bytes(5), b"data")


def test_debug_information_at_the_end_of_a_file_is_left_out(tmp_path: Path) -> None:
    content = bytearray(program(b"text", b"", b"", b"data"))
    end, entry = len(content), len(content) - (len(NAMES) - 2) * view.SECTION.size
    struct.pack_into("QQ", content, entry + 24, end, 11)  # where .debug_info is
    assert copied(tmp_path, bytes(content) + b"information") == bytes(content) + bytes(11)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"#!/bin/sh\n",
        b"\x7fELF",
        program(b"text", b"information", b"lines", b"data")[:63],
        program(b"text", b"information", b"lines", b"data")[:200],
        program(b"text", b"information", b"lines", b"data", index=77),
        program(b"text", b"more text", b"lines", b"data", names=[b"", b".a", b"x.debug_x", b".dbg", b".q", b".s"]),
    ],
    ids=["empty", "script", "magic", "half a header", "no table", "no names", "other sections"],
)
def test_files_without_readable_debug_sections_are_copied_whole(tmp_path: Path, content: bytes) -> None:
    assert copied(tmp_path, content) == content


def parts(sections: dict[int, tuple[int, int]], index: int | None = None) -> tuple[int, list[tuple[int, int]]]:
    """Return the size and the copied parts of a program whose header misplaces these sections."""
    content = bytearray(program(b"text", b"information", b"lines", b"data", index=index))
    table = len(content) - len(NAMES) * view.SECTION.size
    for number, where in sections.items():
        struct.pack_into("QQ", content, table + number * view.SECTION.size + 24, *where)
    file = os.memfd_create("view")
    try:
        size = os.write(file, content)
        return size, view.parts(file, size)
    finally:
        os.close(file)


@pytest.mark.parametrize(
    ("sections", "found"),
    [
        ({}, [(0, 68), (79, 79), (84, 519)]),
        ({2: (100, 20), 3: (90, 20)}, [(0, 90), (110, 519)]),
        ({2: (510, 10)}, [(0, 79), (84, 519)]),
        ({3: (2**64 - 1, 2**64 - 1)}, [(0, 68), (79, 519)]),
        ({5: (2**64 - 1, 10)}, [(0, 519)]),
        ({5: (0, 2**64 - 1)}, [(0, 519)]),
    ],
    ids=["as it is", "overlap", "past the end", "far away", "names far away", "endless names"],
)
def test_sections_that_the_header_misplaces_do_not_break_the_copy(
    sections: dict[int, tuple[int, int]], found: list[tuple[int, int]]
) -> None:
    assert parts(sections) == (found[-1][1], found)


NUMBERS = st.integers(0, 700) | st.integers(0, 2**64 - 1)


@given(st.dictionaries(st.integers(0, len(NAMES) - 1), st.tuples(NUMBERS, NUMBERS)), st.integers(0, 7))
def test_the_copied_parts_are_within_the_file_for_any_header(sections: dict[int, tuple[int, int]], index: int) -> None:
    size, found = parts(sections, index)
    edges = [edge for part in found for edge in part]
    assert (edges[0], edges[-1], edges) == (0, size, sorted(edges))


def test_a_copied_python_runs(tmp_path: Path) -> None:
    source = str(Path(sys.executable).resolve())
    view.copy_file(source, str(tmp_path / "python3"))
    words = [str(tmp_path / "python3"), "-I", "-c", "print(6 * 7)"]
    env = {**os.environ, "PYTHONHOME": sys.base_prefix}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "42\n")


def linked(root: Path, names: dict[str, str]) -> Path:
    """Make a view whose folder ``v`` has these links, relative to ``root`` where they begin with /, beside software."""
    for name in ("a/x/one", "a/x/two", "a/x/.spack/spec", "a/x/in/three", "b/one", "b/two"):
        (root / "software" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "software" / name).touch()
    (root / "views/v").mkdir(parents=True)
    for name, target in names.items():
        (root / "views/v" / name).parent.mkdir(parents=True, exist_ok=True)
        to = root / target[1:] if target.startswith("/") else target
        (root / "views/v" / name).symlink_to(to)
    return root / "views"


A, B = "/software/a/x", "/software/b"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ({"one": f"{B}/one", "two": f"{B}/two"}, B),
        ({"one": "../../software/b/one", "two": f"{B}/two"}, B),
        ({"one": f"{A}/one", "two": f"{A}/two", "in/three": f"{A}/in/three"}, A),
        ({"one": f"{A}/one", "two": f"{A}/two"}, None),
        ({"one": f"{B}/one"}, None),
        ({"one": f"{B}/one", "two": f"{A}/two"}, None),
        ({"one": f"{B}/one", "two": f"{B}/two", "three": f"{B}/one"}, None),
        ({"one": f"{B}/two", "two": f"{B}/one"}, None),
        ({"one": f"{B}/one", "two": f"{B}/two", "three": "one"}, None),
        ({"one": "/gone/one", "two": "/gone/two"}, None),
        ({"one": "/software/gone/one", "two": "/software/gone/two"}, None),
        ({}, None),
    ],
    ids=["all", "relative", "a folder in it", "no folder in it", "fewer", "two origins", "more", "other names", "chain",
         "outside", "gone", "empty"],
)  # fmt: skip
def test_a_folder_of_links_that_repeats_another_folder_is_copied_as_one_link(
    names: dict[str, str], found: str | None, tmp_path: Path
) -> None:
    views = linked(tmp_path, names)
    folder = view.read(str(views), (str(tmp_path / "software"), str(views)))
    assert folder.links == ({"v": f"{tmp_path}{found}"} if found else {})
    view.write(folder, str(tmp_path / "copy"))
    for name in names:
        assert (tmp_path / "copy/v" / name).resolve() == (views / "v" / name).resolve()
