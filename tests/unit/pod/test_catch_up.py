"""begun.py waits for what Flux was given before, and not for what others give it all the while."""

import importlib
import sys
from collections.abc import Callable, Iterator
from itertools import chain, count, repeat
from types import SimpleNamespace
from typing import Any

import pytest
from fake_flux import Answer, install


class Ingest:
    """A handle whose job-ingest has got and has still to validate some jobs, at each look."""

    def __init__(self, looks: Iterator[tuple[int, int]]) -> None:
        self.looks, self.count = looks, 0

    def rpc(self, topic: str, *_: Any) -> Answer:
        if topic == "job-ingest.stats-get":
            self.count += 1
            assert self.count < 2000, "it never ends"
            requests, backlog = next(self.looks)
            return Answer({"pipeline": {"validator": {"requests": requests, "backlog": backlog}}})
        return Answer({"max_jobid": 1})


def floods(backlog: int) -> Iterator[tuple[int, int]]:
    """Yield looks at a queue that never rests: at each it has got, and has dealt with, ten jobs more."""
    return ((backlog + 10 * look, backlog) for look in count())


@pytest.mark.parametrize(
    ("looks", "number"),
    [
        pytest.param(lambda: repeat((7, 0)), 5, id="it rests"),
        pytest.param(lambda: chain([(7, 3), (7, 2)], repeat((7, 0))), 7, id="it has a few"),
        # those of the first look are dealt with at the second one, then come 200 of 0.05 s
        pytest.param(lambda: floods(10), 202, id="others submit all the while"),
        pytest.param(lambda: floods(4000), 601, id="they have submitted many before"),
        pytest.param(lambda: chain(repeat((7, 1), 1000), repeat((7, 0))), 1005, id="one takes long"),
    ],
)
def test_it_waits_for_what_flux_had_at_first_however_much_comes_later(
    monkeypatch: pytest.MonkeyPatch, looks: Callable[[], Iterator[tuple[int, int]]], number: int
) -> None:
    install(monkeypatch)
    monkeypatch.delitem(sys.modules, "begun", raising=False)
    begun = importlib.import_module("begun")
    ingest = Ingest(looks())
    monkeypatch.setattr(begun.time, "sleep", lambda _: None)
    monkeypatch.setattr(begun.time, "monotonic", lambda: ingest.count * begun.INGEST_SECONDS)
    monkeypatch.setattr(begun, "job_list_id", lambda *_: SimpleNamespace(get_job=lambda: None))
    begun.catch_up(ingest)
    assert ingest.count == number
