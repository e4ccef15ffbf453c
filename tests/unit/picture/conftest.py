"""Fixtures: a stand-in lead, and the server of its page."""

import asyncio
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from picture_lead import PictureLead

if TYPE_CHECKING:
    from minicluster.picture.served import PageServer


class Served:
    """A server that runs in a thread of its own."""

    def __init__(self, server: "PageServer") -> None:
        self.pages, self._server, ready = server.pages, server, threading.Event()
        run = self._server.run(0, ready.set, takes_signals=False)
        self._thread = threading.Thread(target=lambda: asyncio.run(run))
        self._thread.start()
        assert ready.wait(20)

    def stop(self) -> None:
        """Stop it, as Ctrl-C does."""
        self._server.stop()
        self._thread.join(20)
        assert not self._thread.is_alive()


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
