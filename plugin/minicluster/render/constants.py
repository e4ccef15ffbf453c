"""The constants that the post-renderer shares with the chart's templates, and the chart's defaults of the values."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

CONSTANTS_FILE = Path(__file__).parent.parent / "chart" / "files" / "constants.json"
_CONSTANTS: dict[str, Any] = json.loads(CONSTANTS_FILE.read_text(encoding="utf-8"))

#: Annotation of the Job with the immutable values: a flat map as JSON. Live releases have it under this name.
IMMUTABLE = "minicluster/immutable"
#: The port on which brokers listen.
BROKER_PORT: int = _CONSTANTS["brokerPort"]
#: Label of the Job and the pods of a group
GROUP_LABEL = "minicluster/group"
#: Label of a Job with the name of its LocalQueue of Kueue.
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
#: Label of a Job with the name of its WorkloadPriorityClass of Kueue.
KUEUE_PRIORITY = "kueue.x-k8s.io/priority-class"
#: Annotation of an elastic Job of Kueue, and scheduling gate of its pods beyond the quota.
KUEUE_ELASTIC = "kueue.x-k8s.io/elastic-job"
#: `managedBy` of a Job that Kueue runs in another cluster.
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
#: What is a GPU for Flux: extended resources, and the variable by which the runtime of these is told a task's own; ""
#: for a runtime that has none. * stands for any text.
GPUS: list[dict[str, Any]] = _CONSTANTS["gpus"]
#: Extended resources that are none: network adapters, parts of a GPU, files such as /dev/fuse.
NO_GPUS: list[str] = _CONSTANTS["noGpus"]
#: Former defaults, those of released versions that have changed since, by path.
FORMER_DEFAULTS: dict[str, str] = _CONSTANTS["formerDefaults"]
#: Pattern of what is no refusal of new Jobs and pods in a dry run beside the old ones: these hold the quota, the
#: upgrade makes the service account, a webhook can't say.
OPEN_REFUSALS: str = _CONSTANTS["openRefusals"]
#: Fields of a Job's spec that are mutable in Kubernetes while the Job lives.
MUTABLE_JOB_FIELDS: list[str] = _CONSTANTS["mutableJobFields"]
#: Fields of a Job's spec that the chart writes, each with the value that sets it, "" for none.
OWN_JOB_FIELDS: dict[str, str] = _CONSTANTS["ownJobFields"]


DEFAULTS_FILE = Path(__file__).parent.parent / "chart" / "files" / "defaults.json"


@cache
def default_values() -> Mapping[str, Any]:
    """Return the chart's values. They are shared: copy what you change."""
    return dict(json.loads(DEFAULTS_FILE.read_bytes()))


def default_value(path: str) -> Any:
    """Return the chart's default of a value, such as ``pod.onStop``. Raises KeyError for a path that there is not."""
    value: Any = default_values()
    for key in path.split("."):
        value = value[key]
    return value


def differing_from_defaults(given: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a map of maps that differs from another one, such as the chart's values."""
    differing: dict[str, Any] = {}
    for key, value in given.items():
        other = beside.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            if part := differing_from_defaults(value, other):
                differing[key] = part
        elif key not in beside or value != other:
            differing[key] = value
    return differing
