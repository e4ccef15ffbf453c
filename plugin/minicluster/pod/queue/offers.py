"""Services of Flux that differ between its versions: no other module depends on the version.

Each function finds what the present Flux has. The oldest version that we support is in entrypoint.sh.
Programs of newer clients import it: its names stay. Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
from importlib.util import find_spec
from typing import Any, Collection, Mapping


def watch_kvs(key: str) -> tuple[str, Mapping[str, Any]]:
    """Return topic and payload of a stream with the value of a key, now and after each change."""
    from flux import constants

    flags = constants.FLUX_KVS_WATCH | constants.FLUX_KVS_WAITCREATE
    return "kvs-watch.lookup", {"namespace": "primary", "key": key, "flags": flags}


def watch_nodes() -> tuple[str, Mapping[str, Any]]:
    """Return topic and payload of a stream with an event whenever a node comes or goes.

    flux-core 0.72 has a service, with a Python module, whose stream also has drains and undrains.
    """
    has_journal = find_spec("flux.resource.journal") is not None
    return ("resource.journal", {}) if has_journal else ("groups.get", {"name": "broker.online"})


def list_modules(handle: Any) -> list[dict[str, Any]]:
    """Return the modules of this rank's broker. Raises OSError."""
    try:
        modules: list[dict[str, Any]] = handle.rpc("module.list").get()["mods"]
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        modules = handle.rpc("broker.lsmod").get()["mods"]  # flux-core < 0.66
    return modules


def can_compact(handle: Any) -> bool:
    """Say whether `flux gc` works: from flux-core 0.87 on, with the content store in SQLite. Raises OSError."""
    try:
        handle.rpc("content-backing.gc-info", {"epoch": 0}).get()
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return False
    return True


def undrain(handle: Any, ranks: Collection[int]) -> None:
    """Undrain ranks; some may not be drained. Raises OSError."""
    if ranks and not _undrain(handle, ranks, {"mode": "update"}):
        # an older Flux lacks the mode, and refuses a request with a rank that isn't drained
        for rank in ranks:
            _undrain(handle, [rank], {})


def _undrain(handle: Any, ranks: Collection[int], how: Mapping[str, str]) -> bool:
    """Undrain ranks; return False if Flux refuses the request as invalid. Raises OSError."""
    try:
        handle.rpc("resource.undrain", {"targets": ",".join(map(str, ranks)), **how}, nodeid=0).get()
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True
