"""Replaces the Job of a MiniCluster and keeps its queue; repeated after an interruption, it goes on where it was."""

import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from minicluster.cluster.find import LiveCluster
from minicluster.cluster.job import end_of, release_of
from minicluster.cluster.lead import Lead
from minicluster.console import streams
from minicluster.console.terminal import ok
from minicluster.errors import Interrupted, MiniClusterError, StateError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.port import Object
from minicluster.lifecycle import leaving, remaking
from minicluster.release import revisions
from minicluster.status.lookup import Cluster, find, refusals
from minicluster.status.reporter import StateReporter, end_in_words
from minicluster.waiting.ready import QUORUM_SECONDS
from minicluster.waiting.wait import looks

#: Seconds for which the lead's pod may lack its image, or fail again and again
STUCK_SECONDS = 60.0


#: What happens to the command of the MiniCluster
WORK_FATE = "begins again in the new pods"


@dataclasses.dataclass(frozen=True)
class Replacement:
    """A MiniCluster whose Job is to be replaced."""

    kubernetes: Kubernetes
    cluster: Cluster
    release: str
    job: Object  #: empty when it is gone
    lead: Lead | None
    before: int  #: the revision to roll back to
    is_half: bool  #: whether an earlier replacement was interrupted, or has not reached its quorum
    say: streams.Say


def replace(  # noqa: PLR0913, PLR0917 - one has a name each
    kubernetes: Kubernetes,
    name: str,
    options: Sequence[str],
    grace: float | None,
    timeout: float,
    say: streams.Say,
    *,
    agree: streams.Agree = leaving.agree_to_all,
) -> None:
    """Change values, and make the Job anew if they need it; ``agree`` asks before running jobs are put back.

    Running jobs have ``grace`` seconds (None: to their end), new pods ``timeout`` to reach the quorum.
    Raises MiniClusterError when nothing or not all is done.
    """
    its_cluster = find(kubernetes, name)
    if not its_cluster.job:
        raise StateError(f"the Job {its_cluster.name} can't be read: ask for a Role that allows it")
    kubernetes = dataclasses.replace(kubernetes, namespace=its_cluster.job.namespace)
    with _interrupted("nothing has changed"):
        one, change = _prepare(kubernetes, its_cluster, options, say)
        is_live = bool(one.job) and "deletionTimestamp" not in one.job["metadata"]
        version = json.loads(kubernetes.kubectl("version", "--output=json"))["serverVersion"]["gitVersion"]
        plan = remaking.render(one.release, its_cluster.job.namespace, change, version)
        differences = list(remaking.changes(one.job, plan.record)) if is_live else []
        if differences and not one.job["spec"].get("suspend"):
            # these refusals need no upgrade that is tried out, which takes seconds
            remaking.check(its_cluster.name, one.release, differences, plan.values)
        refused = revisions.is_refused(kubernetes, one.release, change, say) if is_live else None
    with _interrupted("run the same command again, which goes on from there"):
        if is_live and not refused and not one.is_half:
            revisions.upgrade(kubernetes, one.release, change, say)
            say(f"{its_cluster.name}: the live Job takes these values, so its pods stay")
            return
        if refused and not differences:
            raise refused
        remaking.check(its_cluster.name, one.release, differences, plan.values)
        if refused or not is_live:
            remaking.check_admission(kubernetes, plan.jobs)
            if refused:
                say(f"{its_cluster.name}: the Job is made anew, for {', '.join(path for path, _, _ in differences)}")
            if is_live and _tell_jobs(one, grace):
                agree(f"Replace {its_cluster.name}?", "jobs")
            _take_away(one, grace, is_live=is_live)
        _make(one, change, timeout)


@contextmanager
def _interrupted(way_out: str) -> Iterator[None]:
    """Say more than that Ctrl-C was pressed. Raises Interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted: {way_out}") from None


def _prepare(
    kubernetes: Kubernetes, its_cluster: LiveCluster, options: Sequence[str], say: streams.Say
) -> tuple[Replacement, revisions.Change]:
    """Return what is there, and the change. Raises StateError for a MiniCluster that has ended, ToolError."""
    cluster = Cluster(kubernetes, its_cluster.name)
    with refusals():
        job, lead = cluster.read_job(), cluster.read_lead()
        owner = job or kubernetes.get("configmap", f"{its_cluster.name}-config")
    release = release_of(owner) if owner else its_cluster.name
    is_up = bool(job and "deletionTimestamp" not in job["metadata"] and lead and lead.is_ready)
    if not is_up:
        revisions.forget_interrupted(kubernetes, release)
    history = revisions.read_history(kubernetes, release)
    before = revisions.way_back(history, is_up)
    is_half = not is_up and before != max(history).number
    end = end_of(its_cluster.name, job)
    if job and end and end[0] != "Gone" and not is_half:
        raise StateError(
            f"{its_cluster.name} has ended ({end[0]}): uninstall {release} and install it with the new values"
        )
    revisions.check_chart(history, release)
    values = revisions.read_values(kubernetes, release)
    # a live MiniCluster keeps the maxSize of its install, also if only its size was set
    most = values.get("maxSize") or (its_cluster.job.max_size if its_cluster.job else None)
    change = revisions.Change(options, {**values, **({"maxSize": most} if most else {})})
    return Replacement(kubernetes, cluster, release, job, lead, before, is_half, say), change


# The jobs -----------------------------------------------------------------------------------------------------


def _tell_jobs(one: Replacement, grace: float | None) -> bool:
    """Say which jobs run, and what happens to them; return whether any may be ended."""
    # a lead that is silent ends the replacement before anything changes
    going = leaving.find_affected(one.kubernetes, one.lead, "requeue")._replace(why_unknown="")
    if grace is None:
        leaving.tell(
            one.cluster.name, going, "its nodes", leaving.JobImpact("no limit of time", work=WORK_FATE), one.say
        )
        return False
    time_left = f"{grace:g} s" if grace else "no time"
    again, otherwise = "is then put back into the queue", "is then cancelled: it may not run again"
    return leaving.tell(
        one.cluster.name, going, "its nodes", leaving.JobImpact(time_left, again, otherwise, WORK_FATE), one.say
    )


def _take_away(one: Replacement, grace: float | None, *, is_live: bool) -> None:
    """Remove the Jobs; from a live one after its jobs have ended, or are put back."""
    with leaving.held_queue(one.cluster, one.job, one.lead if is_live else None) as queue:
        if queue:
            with streams.waiting():
                queue.settle(grace, one.say)
        remaking.remove(one.kubernetes, one.cluster.name, one.say, keeps_ended=is_live and not one.is_half)


# The Jobs -----------------------------------------------------------------------------------------------------


def _make(one: Replacement, change: revisions.Change, timeout: float) -> None:
    """Upgrade, and wait for the quorum; else roll back. Raises StateError then."""
    name, kubernetes = one.cluster.name, one.kubernetes
    try:
        revisions.replace(kubernetes, one.release, change, one.before, one.say)
        _wait(one, timeout)
    except MiniClusterError as error:
        one.say(f"{name}: {error}: revision {one.before} comes back")
        try:
            remaking.remove(one.kubernetes, one.cluster.name, one.say, keeps_ended=False)
            revisions.roll_back(kubernetes, one.release, one.before)
            _wait(one, QUORUM_SECONDS)
        except MiniClusterError as worse:
            raise StateError(
                f"{name} was not replaced, {error}; the rollback to revision {one.before} is not complete: {worse}; "
                "run the command again with other values"
            ) from None
        raise StateError(f"{name} was not replaced, {error}: it is rolled back and runs as before") from None
    one.say(ok(f"{name}: replaced, and its queue goes on"))


def _wait(one: Replacement, timeout: float) -> None:
    """Wait for the quorum, or a Job that somebody holds back. Raises StateError for pods that don't start."""
    cluster = one.cluster.within(timeout)
    tell = StateReporter(cluster.kubernetes, cluster.name, one.say)
    stuck = None
    with tell.waiting():
        for job, lead in looks(cluster, one.say):
            if lead and lead.is_ready:
                return
            end = end_in_words(cluster.kubernetes, cluster.name, job, lead)
            if end and end[0] == "Complete":
                return
            if end:
                raise StateError(f"the new pods ended ({': '.join(filter(None, end))})")
            if job.get("spec", {}).get("suspend"):
                one.say(f"{cluster.name}: the new Job is suspended: its pods start when it is resumed")
                return
            pod = tell(job, lead).pods.get(0)
            if not (pod and pod.is_stuck):
                stuck = None
            elif time.monotonic() - (stuck := stuck or time.monotonic()) >= STUCK_SECONDS:
                raise StateError(f"the new pods can't start ({pod.why})")
    raise AssertionError  # looks only ends with an error
