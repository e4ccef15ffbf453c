"""A MiniCluster that an upgrade would give another name: its Job would go, and with it the queue.

Nothing in Kubernetes says that two names are those of one MiniCluster. But one that is added takes no other's place: an
upgrade that adds one and removes one may rename it.
"""

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any, NamedTuple

from minicluster.errors import SpecError
from minicluster.kube.names import CHART_NAME
from minicluster.render import handed
from minicluster.render.revision import Name

_VERSION = re.compile(r"-v?[0-9]+\.[0-9]+\.[0-9]+([-_].*)?$")


class Newcomer(NamedTuple):
    """A MiniCluster that has no Job, in an upgrade of a release that has others."""

    namespace: str
    name: str
    chart: str  #: the chart's name: its alias in a parent chart
    others: Mapping[str, str]  #: names of the Jobs of the release's MiniClusters, each with its chart


def load(document: Mapping[str, Any]) -> Newcomer | None:
    """Return what a hand-over document says of other MiniClusters, if it is of one without a Job; else None.

    Raises SpecError for a text that the chart didn't write.
    """
    text = document.get("others")
    if not text:
        return None
    with handed.by_the_chart("others"):
        found = handed.read(text)
        others = {
            str(one["name"]): _VERSION.sub("", str(one["chart"]))
            for one in found["jobs"]
            if not one["group"] and not one["deleted"]
        }
        chart = str(found["chart"])
    metadata = document["metadata"]
    return Newcomer(str(metadata.get("namespace") or "default"), str(metadata["name"]), chart, others)


def refuse(newcomers: Iterable[Newcomer], kept: Set[Name]) -> None:
    """Raise SpecError for a newcomer beside which a MiniCluster goes.

    ``kept`` are the Jobs of the upgrade; the namespace "" is that of the release.
    """
    for one in newcomers:
        for name, chart in one.others.items():
            # two aliases are two MiniClusters
            is_another = chart != one.chart and CHART_NAME not in (chart, one.chart)
            if not is_another and kept.isdisjoint({(one.namespace, name), ("", name)}):
                raise SpecError(
                    f"nameOverride can't change on the live MiniCluster {name}: the new name is {one.name}, and the "
                    f"queue of {name} would be lost; keep the name {name}, or install {one.name} as a release of its "
                    f"own. If these are two MiniClusters, remove {name} by one upgrade and add {one.name} by the next"
                )
