"""A flux command on the lead, to its end."""

import math
from collections.abc import Sequence
from contextlib import closing

from minicluster.errors import DeadlineError
from minicluster.kube.port import KubePort
from minicluster.lead.ask import read
from minicluster.sdk.lead_wait import wait_for_lead
from minicluster.sdk.result import Result


def run_on_lead(kube: KubePort, name: str, words: Sequence[str], seconds: float | None) -> Result:
    """Wait for the lead, and run a flux command there, within some seconds in all; None sets no limit.

    Raises DeadlineError, EndError, AccessError, KubernetesError.
    """
    kube = kube.within(seconds)
    lead = wait_for_lead(kube, name)
    with closing(kube.run(lead.pod.name, lead.pod.runner, lead.flux_words(*words))) as channel:
        out = read(channel, None if seconds is None else kube.left(math.inf))
    if out is None:
        what = " ".join(["flux", *words[:1]])
        raise DeadlineError(f"{what} on {name} has not ended within {seconds:g} s: give it a longer timeout")
    return Result(channel.exit_code or 0, out.decode(errors="replace"), channel.stderr.decode(errors="replace"))
