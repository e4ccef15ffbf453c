"""Fixtures: a stand-in lead, and the server of its page."""

from collections.abc import Iterator

import pytest
from picture_lead import PictureLead, Served


@pytest.fixture
def picture_lead() -> Iterator[PictureLead]:
    lead = PictureLead()
    yield lead
    lead.drop()


@pytest.fixture
def served(picture_lead: PictureLead) -> Iterator[Served]:
    from minicluster.picture.served import PageServer  # noqa: PLC0415 - Bokeh takes each worker a second

    rows = [{"name": "mini", "state": "Running", "size": 4, "maxSize": 8}]
    served = Served(PageServer(picture_lead.kube, where=" -n lab", listing=lambda: rows))
    yield served
    served.stop()
