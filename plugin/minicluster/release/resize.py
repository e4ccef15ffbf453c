"""Changes the size of a release, or of one of its groups, by Helm with the chart and the post-renderer of this package.

Both have one version. A newer chart leaves the pods of a live MiniCluster as they are: decision 21, in docs/decisions.
"""

import json

from minicluster.errors import ToolError
from minicluster.kube.port import KubePort
from minicluster.names import CHART_NAME
from minicluster.release import helm
from minicluster.release.busy import in_turn
from minicluster.streams import Say
from minicluster.tool import CommandError


def check_own_chart(kubernetes: KubePort, release: str) -> None:
    """Raise ToolError for a release of another chart: an upgrade with ours would remove that chart's other objects."""
    try:
        chart = json.loads(kubernetes.helm("get", "metadata", release, "--output=json"))["chart"]
    except CommandError as error:
        raise ToolError(helm.explain(error)) from None
    if chart != CHART_NAME:
        raise ToolError(
            f"the release {release} is of the chart {chart}, around {CHART_NAME}: change the size by "
            f"`helm upgrade {release} {chart} --reuse-values` and that chart's value for it"
        )


def resize(kubernetes: KubePort, release: str, size: int, group: str, say: Say) -> None:
    """Change the size of a release of our chart, or that of a group, and keep all other values.

    Raises ToolError when Helm or the chart refuses.
    """

    def change() -> None:
        values = _groups(kubernetes, release, group, size) if group else ("--set", f"size={size}")
        words = ("--reuse-values", *values, "--post-renderer", "minicluster")
        kubernetes.helm("upgrade", release, str(helm.CHART), *words)

    in_turn(release, change, say)


def _groups(kubernetes: KubePort, release: str, group: str, size: int) -> tuple[str, str]:
    """Return the option with all groups: Helm doesn't merge a part of a list into that of the release."""
    values = json.loads(kubernetes.helm("get", "values", release, "--output=json"))
    groups = [{**each, "size": size} if each["name"] == group else each for each in values["groups"]]
    return "--set-json", f"groups={json.dumps(groups)}"
