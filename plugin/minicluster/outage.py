"""How long Kubernetes, or a lead, has not answered."""

import time


class Outage:
    """A time without an answer."""

    def __init__(self) -> None:
        """Begin with an answer."""
        self._since: float | None = None

    def end(self) -> None:
        """Note an answer."""
        self._since = None

    @property
    def is_on(self) -> bool:
        """Whether nothing has answered since a failure."""
        return self._since is not None

    def is_forgiven(self, seconds: float) -> bool:
        """Note a failure. Return whether to try again: the first failure was at most ``seconds`` ago."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        return now - self._since <= seconds
