"""Views that can't run in an image: what loader and shell say in the log, and what status makes of it."""

import struct
from pathlib import Path

import pytest
from failures import FAILURES
from minicluster.cluster import states
from minicluster.cluster.pods import REPLACED_CODES
from pods import Make

#: A program for a machine that nobody has (System V ABI, chapter 4)
OTHER_ELF = (
    b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 0xFEED, 1, 64, 64, 0, 0, 64, 56, 1, 64, 0, 0)
)
OLD_LIBC = '#!/bin/sh\necho "$0: /lib/libc.so.6: version \\`GLIBC_2.38\' not found (required by $0)" >&2; exit 1\n'
FLUX: dict[str, bytes] = {
    "libc too old": OLD_LIBC.encode(),
    "no glibc": b"#!/lib64/no-such-loader.so\n",
    "view of another architecture": OTHER_ELF + bytes(4096),
}


@pytest.mark.parametrize("which", FLUX)
def test_status_names_a_view_that_can_not_run_in_the_image(which: str, make: Make) -> None:
    pod = make({"size": 2}, {"command": "true"})
    if pod.shell == "busybox" and which == "view of another architecture":
        pytest.skip("busybox runs such a file as a script")
    flux: Path = pod.root / "bin" / "flux"
    flux.write_bytes(FLUX[which])
    code, log = pod.run()
    assert code not in (0, *REPLACED_CODES), log
    assert f"Failed: {states.of_log(log.splitlines())}" == FAILURES[which].status, log
