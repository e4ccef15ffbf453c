"""When the agent asks Kubernetes again after it failed: more and more seldom.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable

from kube import KubeError
from log import Once

#: Seconds after which a request that failed is repeated; doubled each time, up to the period
RETRY_SECONDS = 1.0


@dataclass
class Retry:
    """A look at Kubernetes that may fail, and when it is tried again."""

    failure: str  #: what the log says before the error
    about: str  #: the log's subject
    pause: float = RETRY_SECONDS
    again: float = -math.inf

    def attempt(
        self, look: Callable[[], tuple[float, float]], now: float, period: float, once: Once
    ) -> tuple[float, float]:
        """Look, unless a failure was too short a time ago.

        Return what the look returns, the least and the most seconds until the next one; after a failure, both are the
        seconds until it is tried again.
        """
        if now < self.again:
            return self.again - now, self.again - now
        try:
            answer = look()
        except KubeError as error:
            once.fail(f"{self.failure}: {error}", self.about)
            wait = min(period, self.pause)
            self.pause, self.again = 2 * wait, now + wait
            return wait, wait
        self.pause = RETRY_SECONDS
        once.fail("", self.about)
        return answer
