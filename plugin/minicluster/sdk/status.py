"""The document of `minicluster status`, asked through the `kubernetes` client."""

from datetime import UTC, datetime
from typing import Any

from minicluster.live.document import document
from minicluster.live.snapshot import explained_snapshot
from minicluster.sdk.client import KubeClient
from minicluster.sdk.leads import find_all
from minicluster.sdk.sdk_evidence import SdkEvidence


def status(kube: KubeClient, name: str) -> dict[str, Any]:
    """Return what `minicluster status NAME -o json` prints. Raises NotFoundError, ApiError."""
    return document(explained_snapshot(SdkEvidence(kube), find_all(kube, name), datetime.now(UTC)))
