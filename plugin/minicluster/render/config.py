"""The ConfigMap and the Secret of a cluster.

The ConfigMap has the settings, and each text of the user in a file of its own: no text of the user becomes part of a
line that a shell reads. The programs of ``pod/`` are beside them, or in a ConfigMap that clusters share (shared.py).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.errors import SpecError
from minicluster.render import broker, curve, devices, settings, shared, upgrade, work
from minicluster.render.model import MiniClusterModel

#: Files of the runner's snippets, by their keys in ``commands``.
SNIPPETS = {
    "init": "init.sh",
    "pre": "pre.sh",
    "brokerPre": "broker-pre.sh",
    "workerPre": "worker-pre.sh",
    "nodeCheck": "node-check.sh",
    "post": "post.sh",
}
#: Bytes of data that Kubernetes allows in a ConfigMap.
DATA_BYTES = 1_048_576


def documents(
    cluster: MiniClusterModel, keypair: curve.Keypair, beside: Mapping[shared.Key, shared.Files] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the ConfigMap, and the Secret unless a Secret of the user has the certificate.

    ``beside`` are the programs in ConfigMaps of several clusters. Raises SpecError or CurveError for what can't be
    rendered.
    """
    certificate = curve.certificate(cluster, keypair)
    data = _data(cluster)
    if shared.are_own(cluster, beside or {}):
        data = {**shared.of_brokers(), **data}
    if cluster.installed:
        sidecars = {sidecar["name"] for sidecar in cluster.sidecars}
        data = upgrade.files(cluster.installed.files, data, sidecars, work.words_before_flags(cluster))
    size = sum(len(key) + len(text.encode()) for key, text in data.items())
    if size > DATA_BYTES:
        raise SpecError(
            f"MiniCluster {cluster.name}: its texts are {size} bytes, a ConfigMap holds {DATA_BYTES}: mount them"
        )
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(cluster, "config"), "data": data}
    if certificate is not None:
        yield curve.secret(_metadata(cluster, "curve"), certificate)


def remarks(cluster: MiniClusterModel) -> list[str]:
    """Return what a user should know of a cluster that can be rendered."""
    return [*devices.uncounted(cluster), *broker.remarks(cluster)]


def _metadata(cluster: MiniClusterModel, suffix: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": f"{cluster.name}-{suffix}", "namespace": cluster.namespace}
    if cluster.labels:
        metadata["labels"] = dict(cluster.labels)
    if cluster.annotations:
        metadata["annotations"] = dict(cluster.annotations)
    return metadata


def _data(cluster: MiniClusterModel) -> dict[str, str]:
    """Return the files by name: the settings, and the user's texts that are not empty."""
    data = {**shared.of_others(), "broker.toml": broker.config(cluster), "settings.sh": settings.shell(cluster)}
    data["agent.json"] = json.dumps(settings.agent(cluster), indent=2) + "\n"
    commands = cluster.runner.get("commands", {})
    texts = {file: commands.get(key, "") for key, file in SNIPPETS.items()} | work.files(cluster)
    for container in [*cluster.sidecars, *cluster.spec["services"]]:
        texts |= _container_files(container)
    return data | {file: text for file, text in texts.items() if text}


def _container_files(container: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of a container that is not the runner; no name of a container has a dot."""
    name, commands = container["name"], container.get("commands", {})
    return {
        f"{name}.command": work.command_script(container.get("command", "")),
        f"{name}.script": commands.get("script", ""),
        f"{name}.init.sh": commands.get("init", ""),
        f"{name}.pre.sh": commands.get("servicePre", ""),
        f"{name}.post.sh": commands.get("post", ""),
    }
