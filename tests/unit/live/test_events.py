"""What is read from events when a pod waits in silence."""

from typing import Any

from minicluster.live.events import newest


def event(reason: str, message: str, **times: Any) -> dict[str, Any]:
    return {"reason": reason, "message": message, **times}


def test_the_newest_event_that_explains_counts() -> None:
    old = event("FailedMount", "old", lastTimestamp="2030-01-01T11:00:00Z")
    new = event("FailedMount", "new", lastTimestamp=None, eventTime="2030-01-01T11:30:00Z")
    series = event(
        "FailedCreate", "last", series={"lastObservedTime": "2030-01-01T11:40:00Z"}, eventTime="2030-01-01T10:00:00Z"
    )
    other = event("BackOff", "other", lastTimestamp="2030-01-01T12:00:00Z")
    assert newest({"items": [new, old, other]}) == "new"
    assert newest({"items": [series, new, old]}) == "last"
    assert newest({"items": [other]}) == newest({}) == ""
