"""A MiniCluster that an upgrade would give another name: its Job would go, and with it the queue.

Nothing in Kubernetes says that two names are those of one MiniCluster. But one that is added takes no other's place: an
upgrade that adds one and removes one may rename it.
"""

from collections.abc import Iterable, Set

from minicluster.errors import SpecError
from minicluster.kube.names import CHART_NAME
from minicluster.render.handover import Newcomer
from minicluster.render.revision import Name


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
