"""Ends the wait for pods that can't start, for every command that waits for one."""

import time

from minicluster.cluster.find import Found
from minicluster.cluster.pods import Pod
from minicluster.errors import EndError

#: Seconds for which a pod may fail to start: a registry may be away for a moment
START_SECONDS = 60.0


class StartWatch:
    """Ends the wait for a lead that can't start, or for the quorum when other pods can't."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._since: float | None = None

    def __call__(self, found: Found) -> None:
        """Look at a MiniCluster without a quorum. Raises EndError when a pod has not started for START_SECONDS."""
        lead, groups = found.pods.get(0), [found.pods, *(group.pods for group in found.groups)]
        # the other pods are like the lead, and start if it does
        pods = [pod for its in groups for pod in its.values() if pod is lead or (lead and lead.phase == "Running")]
        pod = next((one for one in pods if one.is_stuck), None)
        self.see(pod, "the lead" if pod is lead else f"pod {pod.name}" if pod else "")

    def see(self, pod: Pod | None, who: str) -> None:
        """Look at a pod that is waited for, and that may be stuck. Raises the same."""
        now = time.monotonic()
        if not (pod and pod.is_stuck):
            self._since = None
            return
        self._since = now if self._since is None else self._since
        # a name that is no image's gets no better
        if now - self._since >= START_SECONDS or pod.reason == "InvalidImageName":
            raise EndError(f"{self._name} can't start: {who} is {pod.why}")
