"""Changes a release, and waits where another client changes it at this moment: Helm lets one of them fail."""

import re
import time
from collections.abc import Callable

from minicluster.errors import ToolError
from minicluster.outage import RETRY_SECONDS
from minicluster.release import helm
from minicluster.streams import Say
from minicluster.tool import CommandError

#: What Helm says then, and also after a Helm that was killed
BUSY = re.compile(r"another operation \(install/upgrade/rollback\) is in progress|release: already exists")
#: Seconds until the other Helm is taken for one that was killed
KILLED_SECONDS = 60.0


class BusyError(ToolError):
    """Another client has been changing a release for too long."""


def in_turn(release: str, change: Callable[[], object], say: Say) -> None:
    """Change a release, when nobody else does. Raises ToolError when Helm or the chart refuses, BusyError."""
    end, is_told = time.monotonic() + KILLED_SECONDS, False
    while True:
        try:
            change()
        except CommandError as error:
            if not BUSY.search(error.reason):
                raise ToolError(helm.explain(error)) from None
        else:
            return
        if time.monotonic() >= end:
            raise BusyError(
                f"the release {release} is being changed by another client for {KILLED_SECONDS:g} s, or a Helm was "
                f"killed while it did that: `helm rollback {release}` ends it"
            )
        if not is_told:
            say(f"{release}: another client changes it; this change comes after that")
        is_told = True
        time.sleep(RETRY_SECONDS)
