"""The content store on a claim: where Flux can't compact it while jobs run, the end of a lead dumps what it needs."""

import io
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pods import Make, Pod

#: KiB of a store that is compacted, and of one that is not
LARGE, SMALL = 300, 200


def dump() -> bytes:
    """Return a dump as Flux makes it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        info = tarfile.TarInfo("file")
        info.size = 30_000
        tar.addfile(info, io.BytesIO(random.Random(1).randbytes(info.size)))
    return data.getvalue()


def lead(make: Make, version: str, kib: int) -> tuple[Pod, Path]:
    """Make a lead of some Flux with a store on its claim; return the folder too."""
    pod = make({"logging": {"quiet": True}, "state": {"claimName": "shared"}}, {"command": "true"})
    pod.play("--version", f"echo 'commands:    \t\t{version}'")
    pod.edit("archive.sh", "LARGE_STORE_BYTES=268435456", "LARGE_STORE_BYTES=256000")
    folder = pod.home / "state/flux-sample"
    folder.mkdir(parents=True)
    (folder / "content.sqlite").write_bytes(b"x" * (kib << 10))
    return pod, folder


def asked(pod: Pod) -> dict[str, Any]:
    """Run the lead; return what its broker was told about dumps."""
    assert pod.run() == (0, "")
    found = pod.attributes(pod.calls("start")[-1])
    return {key: value for key, value in found.items() if key.startswith("content.")}


@pytest.mark.parametrize(
    ("version", "kib", "expected"),
    [
        ("0.54.0", LARGE, {"content.dump": "auto"}),
        ("0.86.0", LARGE, {"content.dump": "auto"}),
        ("0.61.2", SMALL, {}),
        ("0.87.0", LARGE, {}),
        ("0.100.0", LARGE, {}),
        ("1.0.0", LARGE, {}),
    ],
)
def test_the_end_of_an_older_flux_dumps_a_large_store(
    make: Make, version: str, kib: int, expected: dict[str, Any]
) -> None:
    assert asked(lead(make, version, kib)[0]) == expected


def test_there_is_nothing_to_dump_in_a_new_store(make: Make) -> None:
    pod, folder = lead(make, "0.61.2", LARGE)
    (folder / "content.sqlite").unlink()
    assert asked(pod) == {}


@pytest.mark.parametrize("version", ["0.61.2", "0.88.0"])
def test_a_complete_dump_is_restored(make: Make, version: str) -> None:
    pod, folder = lead(make, version, SMALL)
    (folder / "dump").mkdir()
    (folder / "dump/now.tgz").write_bytes(dump())
    (folder / "dump/RESTORE").symlink_to("now.tgz")
    assert asked(pod) == {"content.restore": "auto"}
    # Flux removes the link when it has restored it
    pod.renew()
    (folder / "dump/RESTORE").unlink()
    assert asked(pod) == {}
    assert not (folder / "dump").exists()


@pytest.mark.parametrize("size", [0, 9000, -200], ids=["empty", "short", "without its end"])
def test_an_incomplete_dump_is_not_restored_and_the_store_stays(make: Make, size: int) -> None:
    pod, folder = lead(make, "0.61.2", SMALL)
    (folder / "dump").mkdir()
    (folder / "dump/now.tgz").write_bytes(dump()[:size])
    (folder / "dump/RESTORE").symlink_to("now.tgz")
    assert asked(pod) == {}
    assert not (folder / "dump").exists()
    assert (folder / "content.sqlite").stat().st_size == SMALL << 10
