"""Runs a command in a MiniCluster of its own: installs it, waits, prints the log, removes it."""

import time

from minicluster.cluster.lead import Lead, end_with
from minicluster.errors import AccessError, AwayError, StateError
from minicluster.kube.port import Object
from minicluster.live.lead_log import LeadLog, Write
from minicluster.live.lookup import Cluster
from minicluster.live.start_watch import StartWatch
from minicluster.live.telling import StateTeller, end_in_words
from minicluster.live.temporary import TemporaryRelease
from minicluster.live.wait import End, end_of_work
from minicluster.live.watch import looks
from minicluster.streams import Say
from minicluster.terminal import Told

#: Seconds for which nobody is asked why it is not there yet: most starts take no longer, and the questions delay them
START_QUIET_SECONDS = 2.0


def run_once(release: TemporaryRelease, say: Say, write: Write, *, keeps: bool) -> End:
    """Install a release, write its lead's log until the work has ended, remove it; return how the work ended.

    With ``keeps`` a release whose work has ended stays, and so does one that can't be seen any more, as its work goes
    on: that raises StateError. Else it is removed, whatever is raised: DeadlineError at the deadline, EndError for a
    lead that can't start, and for an end without an exit code; ToolError for a refusal.
    """
    goes_on = False
    try:
        cluster = release.install()
        job, lead = _follow_to_end(cluster, say, write)
        release.has_ended = True
        # how it ended may be read after the deadline, too
        how = end_in_words(release.kubernetes, cluster.name, job, lead)
        assert how  # noqa: S101 - it was waited for
        end = end_of_work(cluster.name, how, lead)
        say(Told(end.text, "wrong" if end.code else "well"))
    except AccessError as error:
        goes_on = isinstance(error.cause, AwayError) and not release.has_ended
        if goes_on:
            raise StateError(f"{error.cause.reason}: {release.goes_on}") from None
        raise
    finally:
        if release.has_ended and keeps:
            say(f"{release.asked.name} stays: {release.way_out}")
        elif not goes_on:
            release.remove()
    return end


def _follow_to_end(cluster: Cluster, say: Say, write: Write) -> tuple[Object, Lead | None]:
    """Write the log of the lead until the work has ended; return the Job and the lead then.

    `logs.follow` waits for new lines. This watches the other pods meanwhile, which may never start, so a thread reads
    the log. Each new state is said until the quorum, or the first line: only a job has one. Raises DeadlineError, and
    EndError for a lead that can't start.
    """
    tell, check = StateTeller(cluster.kubernetes, cluster.name, say), StartWatch(cluster.name)
    begin = time.monotonic()
    with tell.waiting(), LeadLog(cluster.kubernetes, write, say) as log:
        for job, lead in looks(cluster, say):
            log.see(lead)
            if end_with(cluster.name, job, lead):
                log.finish(lead)
                return job, lead
            is_ready = bool(lead and lead.is_ready)
            if log.has_begun:
                tell.forget()
            elif is_ready or time.monotonic() - begin < START_QUIET_SECONDS:
                tell.quietly("Running" if is_ready else "Starting")
                continue
            if not is_ready:
                check(tell(job, lead, is_quiet=log.has_begun))
    raise AssertionError  # looks only ends with an error
