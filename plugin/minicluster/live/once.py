"""Runs a command in a MiniCluster of its own: installs it, waits, prints the log, removes it."""

import time
from collections.abc import Callable
from dataclasses import replace

from minicluster.cluster.find import Found
from minicluster.errors import EndError, StateError
from minicluster.live import logs
from minicluster.live.lookup import Cluster
from minicluster.live.temporary import TemporaryRelease
from minicluster.live.wait import End, is_ready, look_for, wait
from minicluster.streams import Say
from minicluster.terminal import Told

#: Gets the bytes of a log
Write = Callable[[bytes], object]
#: Seconds for which a pod may fail to start: a registry may be away for a moment
START_SECONDS = 60.0


class StartWatch:
    """Ends the wait for a lead that can't start, or for the quorum when other pods can't."""

    def __init__(self, name: str) -> None:
        """Know nothing yet."""
        self._name = name
        self._since: float | None = None

    def __call__(self, found: Found) -> None:
        """Look at a MiniCluster without a quorum. Raises EndError when a pod has not started for START_SECONDS."""
        lead, groups = found.pods.get(0), [found.pods, *(group.pods for group in found.groups)]
        # the other pods are like the lead, and start if it does
        pods = [pod for its in groups for pod in its.values() if pod is lead or (lead and lead.phase == "Running")]
        pod, now = next((one for one in pods if one.is_stuck), None), time.monotonic()
        if pod is None:
            self._since = None
            return
        self._since = now if self._since is None else self._since
        # a name that is no image's gets no better
        if now - self._since >= START_SECONDS or pod.reason == "InvalidImageName":
            who = "the lead" if pod is lead else f"pod {pod.name}"
            raise EndError(f"{self._name} can't start: {who} is {pod.why}")


def run_once(release: TemporaryRelease, say: Say, write: Write, *, keeps: bool) -> End:
    """Install a release, write its lead's log until the work has ended, remove it; return how the work ended.

    With ``keeps`` a release whose work has ended stays; else it is removed, whatever is raised: DeadlineError at the
    deadline, EndError for a lead that can't start, and for an end without an exit code; ToolError for a refusal.
    """
    try:
        cluster = release.install()
        _follow_to_end(cluster, say, write)
        release.has_ended = True
        # the end is there: how it ended may be read after the deadline, too
        end = wait(replace(cluster, kubernetes=release.kubernetes), "end", say)
        assert end  # noqa: S101 - it was waited for
        say(Told(end.text, "wrong" if end.code else "well"))
    finally:
        if release.has_ended and keeps:
            say(f"{release.asked.name} stays: {release.way_out}")
        else:
            release.remove()
    return end


def _follow_to_end(cluster: Cluster, say: Say, write: Write) -> None:
    """Say each new state until the quorum, then write the log of the lead until the work has ended.

    Without a log it waits all the same. Raises DeadlineError, EndError for a lead that can't start.
    """
    look_for(cluster, is_ready, say, StartWatch(cluster.name))
    try:
        for part in logs.to_end(cluster, "", say):
            write(part.text)
    except StateError as error:
        if cluster.kubernetes.is_late:
            raise
        say(str(error))
        look_for(cluster, None, say)
