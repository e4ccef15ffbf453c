"""What the events of kubectl's watches make of a Job and its pods."""

import json
from collections.abc import Iterable

from minicluster.kube.port import Object, Sight

#: Types of events of an object that is there, and of one that is gone
THERE, REMOVED = ("ADDED", "MODIFIED"), "DELETED"


def after(sight: Sight, events: Iterable[bytes]) -> Sight | None:
    """Return a Job and its pods after some events, each a line; the same if nothing has changed.

    None after an event of another type, such as an error: then all must be read anew.
    """
    job, pods = sight.job, {pod["metadata"]["uid"]: pod for pod in sight.pods["items"]}
    has_changed = False
    for line in events:
        event = json.loads(line)
        kind, found = event["type"], event["object"]
        if kind not in (*THERE, REMOVED):
            return None
        is_job, uid = found["kind"] == "Job", found["metadata"]["uid"]
        known = job if is_job else pods.get(uid, {})
        if kind in THERE and not _is_newer(found, known):
            continue
        has_changed = True
        if is_job:
            job = found if kind in THERE else {}
        elif kind in THERE:
            pods[uid] = found
        else:
            pods.pop(uid, None)
    return Sight(job, {"items": list(pods.values())}) if has_changed else sight


def _is_newer(found: Object, known: Object) -> bool:
    """Return whether an object is newer than what is known: a watch begins with what there was before the reading."""
    one, other = found["metadata"], known.get("metadata", {})
    return one["uid"] != other.get("uid") or int(one["resourceVersion"]) > int(other["resourceVersion"])
