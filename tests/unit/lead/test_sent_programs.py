"""The programs that clients send to the lead."""

import json

import pytest
from minicluster.lead.program import SENT, first_line
from minicluster.pod import without_comments


@pytest.mark.parametrize(
    ("program", "modules"),
    [
        ("burst_need", ["saved", "offers", "state", "changes", "need", "pending"]),
        ("distribute", []),
        ("ending", ["saved", "offers", "state", "begun", "requeue"]),
        (
            "explain",
            [
                *("pending", "waiting", "output_events", "history", "saved", "offers", "state", "job_record"),
                *("need", "start_times", "used_now"),
            ],
        ),
        ("job_report", ["saved", "offers", "state", "job_record", "history", "inner_jobs"]),
        (
            "mine",
            [
                *("history", "output_events", "begun", "saved", "offers", "state", "job_record"),
                *("pending", "waiting", "described", "instance"),
            ],
        ),
        (
            "observe",
            [
                *("history", "saved", "offers", "state", "job_record", "observed", "replies", "pending", "waiting"),
                *("used_now", "inner_jobs"),
            ],
        ),
        ("printed", ["history", "output_events"]),
        # remote.py has no reasons where the lead's pod lacks what waiting.py imports
        (
            "remote",
            [
                *("pending", "waiting", "described", "output_events", "replies", "history", "recorded", "followed"),
                *("saved", "offers", "state", "job_record", "job_report", "inner_jobs", "begun", "live_output"),
                "instance",
            ],
        ),
        ("settle", ["saved", "offers", "state", "begun", "requeue"]),
        ("waiting", ["pending"]),
        ("would_fit", ["ingest", "need", "offers", "saved", "start_times", "state", "pending", "waiting"]),
    ],
)
def test_a_program_is_sent_with_the_modules_that_it_imports(program: str, modules: list[str]) -> None:
    sent = dict(json.loads(first_line(program)))
    assert set(sent) == {*modules, "__main__"}
    assert list(sent)[-1] == "__main__"
    for position, text in enumerate(sent.values()):
        later = list(sent)[position + 1 :]
        assert not [name for name in later if f"\nimport {name}\n" in text or f"\nfrom {name} " in text]


def test_a_program_of_each_file_can_be_sent() -> None:
    for file in SENT.glob("[a-z]*.py"):
        assert json.loads(first_line(file.stem))[-1] == ["__main__", without_comments(file.read_text())]
