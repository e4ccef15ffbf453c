"""lost_lead.py: a worker's broker has lost the connection to its lead: makes it notice a new one, and end.

A broker learns that its lead is another one when it sends something, and then ends. One that waits for a lead that is
gone, for its quorum or at the end for its goodbye, is killed: it has nothing else to do.
Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from contextlib import suppress
from typing import Any

import flux

#: Seconds for which the broker is watched, and for which it may wait for the lead; the pause between two looks
WATCHED_SECONDS, GOODBYE_SECONDS, GOODBYE_POLL_SECONDS = 20.0, 2.0, 0.5


def has_lost_lead(handle: Any) -> bool:
    """Say whether the broker knows that its lead is gone."""
    try:
        handle.rpc("state-machine.get", nodeid=0).wait_for(GOODBYE_POLL_SECONDS).get()
    except OSError as error:
        return error.errno == errno.EHOSTUNREACH
    return False


def main(handle: Any) -> None:
    """Send something to the lead, and watch the broker. Raises OSError when the broker has ended."""
    broker = int(handle.attr_get("broker.pid"))
    # nobody waits for the answer
    asked = handle.rpc("state-machine.get", nodeid=0)
    begin = since = time.monotonic()
    while time.monotonic() < begin + WATCHED_SECONDS:
        state = handle.rpc("state-machine.get").get()["state"]
        if state != "goodbye" and not (state == "quorum" and has_lost_lead(handle)):
            since = time.monotonic()
        elif time.monotonic() >= since + GOODBYE_SECONDS:
            os.kill(broker, signal.SIGKILL)
        time.sleep(GOODBYE_POLL_SECONDS)
    del asked


if __name__ == "__main__":
    with suppress(OSError):
        main(flux.Flux())
