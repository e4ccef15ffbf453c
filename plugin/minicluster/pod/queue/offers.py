"""What a Flux offers, and what an older one has in its place: no other module knows versions.

Each is found by the Flux that is there. The least version is in entrypoint.sh.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
from importlib.util import find_spec
from typing import Any, Collection, Mapping


def watch_kvs(key: str) -> tuple[str, Mapping[str, Any]]:
    """Return topic and payload of a stream that begins with the value of a key, and tells each change."""
    from flux import constants

    flags = constants.FLUX_KVS_WATCH | constants.FLUX_KVS_WAITCREATE
    return "kvs-watch.lookup", {"namespace": "primary", "key": key, "flags": flags}


def watch_nodes() -> tuple[str, Mapping[str, Any]]:
    """Return topic and payload of a stream that tells that nodes come or go.

    flux-core 0.72 has a service that also tells that they are drained or undrained, and a module for the service.
    """
    has_journal = find_spec("flux.resource.journal") is not None
    return ("resource.journal", {}) if has_journal else ("groups.get", {"name": "broker.online"})


def list_modules(handle: Any) -> list[dict[str, Any]]:
    """Return the modules of this rank's broker. Raises OSError."""
    try:
        found: list[dict[str, Any]] = handle.rpc("module.list").get()["mods"]
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        found = handle.rpc("broker.lsmod").get()["mods"]  # flux-core < 0.66
    return found


def undrain(handle: Any, ranks: Collection[int]) -> None:
    """Let jobs start again on ranks, drained ones or not. Raises OSError."""
    if ranks and not _undrain(handle, ranks, {"mode": "update"}):
        # an older Flux doesn't know the mode, and without it one rank that isn't drained fails the request
        for rank in ranks:
            _undrain(handle, [rank], {})


def _undrain(handle: Any, ranks: Collection[int], how: Mapping[str, str]) -> bool:
    """Undrain ranks; return False where Flux finds the request wrong. Raises OSError."""
    try:
        handle.rpc("resource.undrain", {"targets": ",".join(map(str, ranks)), **how}, nodeid=0).get()
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True
