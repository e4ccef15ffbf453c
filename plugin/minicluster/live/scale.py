"""The size of a MiniCluster is changed: by Helm, or where it scales itself by a request to its autoscaler."""

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minicluster.errors import StateError
from minicluster.kubectl import CommandError, Kubernetes, reason
from minicluster.live.find import find_name, refusals
from minicluster.live.lead import Lead, end_of, release_of
from minicluster.live.ready import find_ready_lead
from minicluster.live.wait import wait
from minicluster.live.watch import RETRY
from minicluster.release.resize import resize
from minicluster.status.objects import policy_of, read_job

ONLINE = Path(__file__).with_name("online.py")
Say = Callable[[str], None]


def scale(kubernetes: Kubernetes, name: str, size: int | None, seconds: float | None, say: Say) -> None:
    """Change the size; None leaves it to the autoscaler. With ``seconds`` wait until the nodes are in Flux.

    Raises StateError, StatusError; ToolError when Helm or the chart refuses.
    """
    name = find_name(kubernetes, name)
    with refusals():
        job = kubernetes.get("job", name)
        policy = policy_of(kubernetes.get("configmap", f"{name}-config"))
    end = end_of(name, job)
    if end:
        raise StateError(f"{name} has ended, so it has no size: {': '.join(filter(None, end))}")
    found = read_job(job)
    if found and found.lead_address and seconds is not None:
        raise StateError(f"{name} joins another cluster, whose Flux has its nodes: leave out --wait")
    if policy:
        _ask(kubernetes, name, size, policy, say)
    elif size is None:
        raise StateError(f"{name} has no autoscaler that could choose its size: give a number")
    else:
        was = job["spec"]["completions"]
        resize(kubernetes, release_of(job), size)
        say(f"{name}: size {was} -> {size}")
    if size is not None and seconds is not None:
        most = found.max_size if found else size
        _wait(kubernetes, name, [size, most, str(bool(policy)).lower()], seconds, say)


def _ask(kubernetes: Kubernetes, name: str, size: int | None, policy: dict[str, Any], say: Say) -> None:
    """Request a size of the autoscaler, which refuses what it may not. Raises StateError."""
    lead = find_ready_lead(kubernetes, name, say)
    words = (f"{lead.home}/bin/minicluster-scale", "auto" if size is None else str(size))
    try:
        kubernetes.kubectl("exec", lead.pod.name, f"--container={lead.pod.runner}", "--", *words)
    except CommandError as error:
        raise StateError(f"{name} sizes itself: {error.reason.removeprefix('minicluster-scale: ')}") from None
    limits = f"from {policy['min']} to {policy['max']}"
    if size is None:
        say(f"{name} sizes itself {limits}, by its queue alone")
    else:
        say(
            f"{name} sizes itself {limits}: asked it for at least {size} nodes; `minicluster scale {name} auto` "
            "withdraws that"
        )


def _wait(kubernetes: Kubernetes, name: str, wanted: list[object], seconds: float, say: Say) -> None:
    """Wait until so many nodes are in Flux, also over the loss of a lead. Raises StateError after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise StateError(f"{name} has its new size, but not all of its nodes within {seconds:g} s: see its status")
        code = wait(kubernetes, name, "quorum", left, say)
        if code:
            raise StateError(f"{name} has ended with exit code {code}")
        lead = find_ready_lead(kubernetes, name, say)
        if _watch(kubernetes, lead, wanted, end, lambda n: say(f"{name}: {n} nodes up")):
            return
        time.sleep(RETRY)  # its pod may be on its way out


def _watch(kubernetes: Kubernetes, lead: Lead, wanted: list[object], end: float, say: Say) -> bool:
    """Watch the brokers that are online, and tell whether they became what is wanted within the time."""
    flux = lead.flux_words("python", "-c", ONLINE.read_text(encoding="utf-8"), *map(str, wanted))
    words = kubernetes.words("exec", lead.pod.name, f"--container={lead.pod.runner}", "--stdin", "--", *flux)
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:  # noqa: S603
        timer = threading.Timer(max(0.0, end - time.monotonic()), process.kill)
        timer.start()
        try:
            for line in process.stdout or ():
                say(line.strip())
            error = CommandError("kubectl exec", reason(process.stderr.read() if process.stderr else ""))
        finally:
            timer.cancel()
        if error.is_forbidden:
            with refusals():
                raise error
        return process.wait() == 0
