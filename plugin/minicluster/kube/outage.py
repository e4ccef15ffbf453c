"""How long Kubernetes, or a lead, has not answered; the times of a machine that may sleep meanwhile."""

import re
import time
from collections.abc import Callable

from minicluster.console.terminal import StyledText

#: Seconds of an outage until a command gives up: the upgrade of a control plane takes minutes
OUTAGE_SECONDS = 900.0
#: Seconds until Kubernetes, or a lead, is asked again after a failure
RETRY_SECONDS = 1.0
#: What kubectl says of an API server that is not there
UNREACHABLE = re.compile(
    r"connection to the server .* was refused|Unable to connect to the server|i/o timeout|no answer within|"
    r"TLS handshake timeout|connection reset by peer|no route to host|\((ServiceUnavailable|InternalError)\)"
)


def is_of_outage(reason: str) -> bool:
    """Return whether an error of kubectl means that the API server does not answer."""
    return UNREACHABLE.search(reason) is not None


class Outage:
    """A time without an answer."""

    def __init__(self, say: Callable[[str], object] | None = None) -> None:
        """Begin with an answer; ``say`` is told of each outage that begins."""
        self._since: float | None = None
        self._say = say

    def end(self) -> None:
        """Note an answer."""
        self._since = None

    @property
    def seconds(self) -> float:
        """The seconds since its first failure."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    def bears(self, why: str) -> bool:
        """Note a failure. Return whether to try again: the first failure was at most OUTAGE_SECONDS ago."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            if self._say:
                self._say(StyledText(f"{why}: trying again for {OUTAGE_SECONDS:g} s", "waits"))
        return now - self._since <= OUTAGE_SECONDS


class Age:
    """How long ago something was: while a laptop sleeps, the monotonic clock stands, and only the other one goes on."""

    def __init__(self) -> None:
        self._begin = (time.monotonic(), time.time())

    @property
    def seconds(self) -> float:
        """The most that it can be."""
        return max(time.monotonic() - self._begin[0], time.time() - self._begin[1])
