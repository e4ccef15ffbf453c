"""Whether Flux can save its state, by the space on its volume and by what waits to be saved."""

from types import SimpleNamespace
from typing import Any

import pytest
import saved
from fake_flux import FakeFlux

MIB = 1 << 20
FULL = (
    "the volume of Flux's state is full, 0 of 2 MiB are free in /: free space there or raise state.capacity; running "
    "jobs go on, new ones may hang, and what comes from now on is lost with the lead's broker"
)
WAS_FULL = (
    "Flux's state is not saved since its volume / was full, Flux does not try again, and a new job may hang: save "
    "what came since by `flux dump FILE`, then delete the lead's pod"
)


@pytest.mark.parametrize(
    ("free", "content", "expected"),
    [
        (0, {"dirty": 0, "flush-batch-count": 0}, FULL),
        (MIB - 1, {"dirty": 0, "flush-batch-count": 0}, FULL),
        (MIB, {"dirty": 0, "flush-batch-count": 0}, ""),
        (MIB, {"dirty": 300, "flush-batch-count": 256}, ""),
        (MIB, {"dirty": 3, "flush-batch-count": 0}, WAS_FULL),
        # older versions don't say how many are on their way
        (MIB, {"dirty": 3}, ""),
    ],
)
def test_a_state_that_can_not_be_saved_is_a_problem(
    free: int, content: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "space", lambda _: (free, 2 * MIB))
    assert saved.problem(FakeFlux({}, set(), content=content)) == expected


def test_the_folder_of_an_older_flux_is_its_rundir(monkeypatch: pytest.MonkeyPatch) -> None:
    def attr_get(name: str) -> str:
        if name == "statedir":
            raise OSError
        return f"/{name}"

    handle = FakeFlux({}, set())
    monkeypatch.setattr(handle, "attr_get", attr_get)
    monkeypatch.setattr(saved, "space", lambda folder: (0, 2 * MIB) if folder == "/rundir" else (MIB, 2 * MIB))
    assert "are free in /rundir: " in saved.problem(handle)


@pytest.mark.parametrize(
    ("home", "free", "is_told"),
    [("/mnt/flux", 99, True), ("/mnt/flux", 100, False), ("/mnt/other", 99, False), ("/mnt/flux", 1, True)],
)
def test_a_claim_that_is_nearly_full_is_a_problem_and_the_disk_of_the_machine_is_not(
    home: str, free: int, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = FakeFlux({}, set())
    monkeypatch.setattr(handle, "attr_get", lambda _: "/mnt/flux/state/demo")
    monkeypatch.setattr(saved, "space", lambda _: (free * MIB, 1000 * MIB))
    monkeypatch.setenv("MINICLUSTER_HOME", home)
    expected = (
        "more than 90% of the volume of Flux's state are used, 1000 MiB in /mnt/flux/state/demo: free space there "
        "or raise state.capacity; when it is full, what comes then is lost with the lead's broker"
    )
    assert saved.problem(handle) == (expected if is_told else "")


def test_the_size_of_a_volume_is_what_is_used_and_what_is_free_as_in_df(monkeypatch: pytest.MonkeyPatch) -> None:
    # a part of it is kept for others: root's reserve, or a quota
    volume = SimpleNamespace(f_frsize=4096, f_blocks=1000, f_bfree=700, f_bavail=100)
    monkeypatch.setattr(saved.os, "statvfs", lambda _: volume)
    assert saved.space("/any") == (100 * 4096, 400 * 4096)
