"""Changes the size of a release by Helm, with the chart and the post-renderer of this package.

Both have one version. A newer chart leaves the pods of a live MiniCluster as they are (docs/architecture.md, 21).
"""

import json

from minicluster.errors import ToolError
from minicluster.kubectl import CommandError, Kubernetes
from minicluster.release import helm

CHART = "minicluster"


def resize(kubernetes: Kubernetes, release: str, size: int) -> None:
    """Change the size, and keep all other values. Raises ToolError when Helm or the chart refuses."""
    try:
        # if the release is of another chart, an upgrade with ours would remove that chart's other objects
        chart = json.loads(kubernetes.helm("get", "metadata", release, "--output=json"))["chart"]
        if chart != CHART:
            raise ToolError(
                f"the release {release} is of the chart {chart}, around {CHART}: `helm upgrade {release} {chart} "
                "--reuse-values` with its value for the size changes it"
            )
        words = ("--reuse-values", "--set", f"size={size}", "--post-renderer", "minicluster")
        kubernetes.helm("upgrade", release, str(helm.CHART), *words)
    except CommandError as error:
        raise ToolError(helm.explain(error)) from None
