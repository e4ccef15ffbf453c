"""Names of mpi-operator's pods in words and variables become those of the hosts here, or are refused.

The operator's pods are JOB-launcher and JOB-worker-N, in the domain of a Service JOB. Here the hosts are JOB-N in the
domain of the headless Service, which has the cluster's name too.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from minicluster.convert.mpijob import run_time
from minicluster.convert.part import Map, Report
from minicluster.errors import ConvertError

#: Fields of a container that have texts of the user
FIELDS = ("command", "args", "env", "environment", "lifecycle")
#: No other name and no path is before a name, but `tcp://` may be
BEFORE_NAMES = r"(?:(?<![a-z0-9./-])|(?<=//))"
#: Names that a shell builds, or patterns to compare with
BUILT = r"\$(?:\w+|\{[^}]*\}|\([^)]*\))-(?:worker-|launcher\b)[^\s'\";,]*|\*-?(?:worker|launcher)\b[-*]*"


class PodNames:
    """The names of an MPIJob's pods."""

    def __init__(self, name: str, leads: int) -> None:
        """Begin with the job's name; ``leads`` is 1 if the launcher is a worker too, and has the first index."""
        self._name, self._leads = name, leads
        pods = rf"{BEFORE_NAMES}{re.escape(name)}-(?:launcher|worker(?:-(?P<index>\d+))?)"
        self._pod = re.compile(rf"{pods}(?![\w$-])(?:\.{re.escape(name)}(?![\w-]))?")
        self._rest = re.compile(rf"{pods}[^\s'\";,]*|{BUILT}")
        self.changed: dict[str, str] = {}  #: each name that was found, and that of the host here

    def changed_text(self, text: str, where: str) -> str:
        """Return a text with the names of hosts here. Raises ConvertError for a name that is not whole."""

        def host(match: re.Match[str]) -> str:
            if match[0].endswith("-worker"):
                return match[0]
            index = int(match["index"]) + self._leads if match["index"] else 0
            return self.changed.setdefault(match[0], f"{self._name}-{index}.{self._name}")

        text = self._pod.sub(host, text)
        rest = self._rest.search(text)
        if rest:
            here = f"{self._name}-0.{self._name}"
            raise ConvertError(
                f"{where} names mpi-operator's pods by {rest[0]}: here the hosts are {here} and so on, write names out"
            )
        return text


def rename(converted: Map, name: str, leads: int, report: Report) -> None:
    """Change the names in the texts of the containers. Raises ConvertError for what can't be changed."""
    names = PodNames(name, leads)
    runner = converted["containers"][0]
    template = converted.get("pod", {}).get("template", {}).get("spec", {})
    for container in (*converted["containers"], *template.get("containers", []), *template.get("initContainers", [])):
        for field in [field for field in FIELDS if field in container]:
            where = f"{field} of the container {container.get('name', '')}".rstrip()
            if not (container is runner and field == "command"):  # the launcher's words, which are checked
                _mapped(container[field], partial(run_time.refuse, where=where))
            container[field] = _mapped(container[field], partial(names.changed_text, where=where))
    if names.changed:
        pairs = ", ".join(f"{old} is {new}" for old, new in names.changed.items())
        report.notes.append(f"names of mpi-operator's pods are those of the hosts here: {pairs}")
    unread = ", ".join(dict.fromkeys(_config_maps(converted)))
    if unread:
        report.warnings.append(f"the text of ConfigMap {unread} is not seen: change names like {name}-worker-0 in it")


def _config_maps(value: Any) -> Iterator[str]:
    """Yield the names of the ConfigMaps that volumes and variables have."""
    for key, item in value.items() if isinstance(value, dict) else ():
        if key == "configMapName":
            yield str(item)
        elif key in ("configMap", "configMapRef", "configMapKeyRef") and isinstance(item, dict):
            yield str(item.get("name"))
        else:
            yield from _config_maps(item)
    for item in value if isinstance(value, list) else ():
        yield from _config_maps(item)


def _mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Return a value with all of its texts changed, but for names and sources of variables."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    if isinstance(value, dict):
        kept = ("name", "valueFrom")
        return {key: item if key in kept else _mapped(item, change) for key, item in value.items()}
    return value
