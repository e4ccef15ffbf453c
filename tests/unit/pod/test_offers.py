"""How functions of the newest Flux are replaced on older versions."""

import errno
from typing import Any

import pytest
from fake_flux import FakeFlux
from offers import list_modules, undrain
from state import parse_idset

TOLD = "minicluster: the pod was told to stop"


class OldFlux(FakeFlux):
    """Flux before 0.66: another service lists the modules, and undrain knows no mode."""

    def module_list(self, *_: Any) -> Any:
        raise OSError(errno.ENOSYS, "No service matching module.list is registered")

    def broker_lsmod(self, *_: Any) -> dict[str, Any]:
        return super().module_list()

    def resource_undrain(self, payload: Any, nodeid: int | None) -> None:
        if not set(parse_idset(payload["targets"])) <= self.drained.keys():
            raise OSError(errno.EINVAL, "rank 2 not drained")
        super().resource_undrain({**payload, "mode": "update"}, nodeid)


class StrictFlux(OldFlux):
    """Flux 0.68: it refuses the mode."""

    def resource_undrain(self, payload: Any, nodeid: int | None) -> None:
        if "mode" in payload:
            raise OSError(errno.EINVAL, "invalid undrain mode 'update' specified")
        super().resource_undrain(payload, nodeid)


def flux_with(kind: type[FakeFlux], drained: dict[int, str]) -> FakeFlux:
    found = kind(dict.fromkeys(range(4), (1, 0)), set(range(4)))
    found.drained = drained
    return found


@pytest.mark.parametrize("kind", [FakeFlux, OldFlux])
def test_list_modules_works_with_old_and_new_flux(kind: type[FakeFlux]) -> None:
    assert [module["name"] for module in list_modules(flux_with(kind, {}))] == ["kvs", "sched-simple"]


def test_list_modules_does_not_hide_another_error() -> None:
    flux = flux_with(OldFlux, {})
    flux.errors = {"module.list": OSError(errno.EPERM, "Operation not permitted")}
    with pytest.raises(PermissionError):
        list_modules(flux)


@pytest.mark.parametrize("kind", [FakeFlux, OldFlux, StrictFlux])
def test_undrain_works_when_one_of_the_ranks_is_not_drained(kind: type[FakeFlux]) -> None:
    flux = flux_with(kind, {1: TOLD, 3: TOLD})
    undrain(flux, [1, 2, 3])
    assert flux.drained == {}


def test_undrain_without_ranks_asks_nothing_of_flux() -> None:
    flux = flux_with(FakeFlux, {})
    undrain(flux, [])
    assert flux.done == []
