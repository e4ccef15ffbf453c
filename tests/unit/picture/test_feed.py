"""A picture goes on: with the API server away, and when the MiniCluster is suspended, removed or made anew."""

from collections.abc import Iterator

import pytest
from fake_kube import away
from minicluster.picture.feed import Feed
from minicluster.picture.job_history import status_of
from picture_lead import PictureLead, TellingChannel, job, past
from status_samples import SUSPENDED, suspended
from status_samples import job as kubernetes_job

from tools.clients import until


class Shown:
    """A feed that knows two jobs, and the conversation with its lead."""

    def __init__(self, lead: PictureLead) -> None:
        self.lead, self.feed = lead, Feed(lead.kube, "mini")
        self.talk: TellingChannel = lead.begin([job(1), job(2, state="RUN", result=None)])
        self.comes("Running", trouble="", jobs=2)

    def comes(self, state: str, *, trouble: str, jobs: int) -> None:
        """Wait until the picture has a state, the words for what is wrong, and so many jobs."""
        wanted = (state, trouble, jobs)
        until(lambda: self.now == wanted, what=f"{wanted}")

    @property
    def now(self) -> tuple[str, str, int]:
        with self.feed.lock:
            timeline = self.feed.timeline
            return timeline.status.get("state", ""), timeline.trouble, len(timeline.jobs.jobs)


@pytest.fixture
def picture(picture_lead: PictureLead) -> Iterator[Shown]:
    found = Shown(picture_lead)
    yield found
    found.feed.close()


def test_a_picture_is_complete_when_it_has_the_nodes_that_are_up(picture_lead: PictureLead) -> None:
    feed = Feed(picture_lead.kube, "mini")
    *first, nodes = past([job(1)])
    talk = picture_lead.talk()
    for told in first:
        talk.say(**told)
    until(lambda: feed.timeline.status.get("nodes"), what="the status")
    assert not feed.is_complete
    talk.say(**nodes)
    until(lambda: feed.is_complete, what="the nodes")
    feed.close()


def test_a_lead_that_was_not_asked_yet_is_not_called_silent(picture_lead: PictureLead) -> None:
    feed = Feed(picture_lead.kube, "mini")
    talk = picture_lead.talk()
    until(lambda: feed.timeline.size is not None, what="the first look at Kubernetes")
    assert feed.timeline.status == {}
    talk.end()
    until(lambda: feed.timeline.status.get("state") == "Unknown", what="the end of the conversation")
    feed.close()


def test_an_api_server_that_is_away_is_told_and_the_lead_is_still_heard(picture: Shown) -> None:
    has = picture.lead.kube.has
    there = dict(has)
    has.update(job=away(), pods=away())
    trouble = "Kubernetes does not tell how it is now: ask: no server"
    picture.comes("Running", trouble=trouble, jobs=2)
    picture.talk.say(jobs=[job(3)])
    picture.comes("Running", trouble=trouble, jobs=3)
    has.update(there)
    picture.comes("Running", trouble="", jobs=3)


def test_a_minicluster_that_is_suspended_keeps_its_jobs_and_goes_on_when_it_is_back(picture: Shown) -> None:
    has = picture.lead.kube.has
    there = dict(has)
    has.update(job=suspended(), pods=[])
    picture.talk.end()
    picture.comes("Suspended", trouble="", jobs=2)
    assert picture.feed.timeline.status["why"] == SUSPENDED
    has.update(there)
    picture.lead.begin([job(1), job(2), job(4)])
    picture.comes("Running", trouble="", jobs=3)


def test_a_minicluster_that_is_removed_stays_in_the_picture_until_there_is_another(picture: Shown) -> None:
    has = picture.lead.kube.has
    there = dict(has)
    has.update(job={}, pods=[])
    picture.talk.end()
    gone = "there is no MiniCluster mini in namespace lab: see `minicluster list -A` and give its -n"
    picture.comes("Gone", trouble=gone, jobs=2)
    has.update(there, job=kubernetes_job(created="2030-01-01T13:00:00Z"))
    picture.lead.begin([job(7)])
    picture.comes("Running", trouble="", jobs=3)
    with picture.feed.lock:
        states = {each["id"]: status_of(each) for each in picture.feed.timeline.jobs.jobs.values()}
    assert states == {"f1": "COMPLETED", "f2": "LOST", "f7": "COMPLETED"}
