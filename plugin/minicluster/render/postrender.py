"""Post-rendering: a stream of manifests with its MiniClusters rendered, and everything else byte for byte.

Of a cluster, the ConfigMap has the settings, and each text of the user in a file of its own: no text of the user
becomes part of a line that a shell reads. The programs of ``pod/`` are beside them, or in ConfigMaps that clusters
share (shared.py).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from minicluster.errors import CurveError, SpecError
from minicluster.render import broker, curve, devices, handover, revision, settings, shared, stream, upgrade, work
from minicluster.render.load import load
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


def render(
    data: bytes,
    seed: bytes | None,
    allow_random: bool | Callable[[MiniClusterModel], None],
    say: Callable[[str], object] = lambda _: None,
) -> bytes:
    """Return a stream with its MiniClusters rendered; new keys come from the seed, or at random where allowed.

    ``allow_random`` may be a function that raises CurveError for a cluster that must not get such keys. ``say`` is told
    the warnings: Helm's own command has them in its notes. Raises MiniClusterError.
    """
    newcomers: list[handover.Newcomer] = []
    revisions: set[str] = set()
    live: dict[revision.Name, handover.LiveJob] = {}

    def expand(handovers: Sequence[dict[str, Any]]) -> Iterator[Iterable[Mapping[str, Any]]]:
        clusters = list(map(load, handovers))
        newcomers.extend(filter(None, map(handover.newcomer, handovers)))
        for document in handovers:
            live.update(handover.live_jobs(document))
        revisions.update(filter(None, (str(document.get("last") or "") for document in handovers)))
        programs = shared.files(clusters)
        left = dict(programs)
        for cluster in clusters:
            for warning in remarks(cluster):
                say(f"warning: MiniCluster {cluster.name}: {warning}")
            keypair = partial(_keypair, cluster, seed, allow_random)
            yield chain(shared.documents(cluster, left), documents(cluster, keypair, programs))
        assert not left, f"no cluster of the release has the programs {list(left)}"

    rendered = b"".join(stream.render(data, expand))
    if not (newcomers or revisions or live):
        return rendered
    return _with_live_jobs(rendered, newcomers, revisions, live)


def _with_live_jobs(
    rendered: bytes,
    newcomers: Sequence[handover.Newcomer],
    revisions: set[str],
    live: Mapping[revision.Name, handover.LiveJob],
) -> bytes:
    """Return the stream of an upgrade, in which live Jobs stay as they were sent. Raises SpecError for a new name."""
    jobs = list(revision.applied(revision.jobs_of(rendered), live))
    revision.refuse_renamed(newcomers, {revision.name_of(job) for _, job in jobs if job})
    before = {name: job for text in revisions for name, job in revision.jobs(text).items()}
    return revision.with_sent(jobs, before)


def _keypair(
    cluster: MiniClusterModel, seed: bytes | None, allow_random: bool | Callable[[MiniClusterModel], None]
) -> tuple[bytes, bytes]:
    if seed is not None:
        return curve.seeded_keypair(seed, cluster)
    if callable(allow_random):
        allow_random(cluster)
    if allow_random:
        return curve.random_keypair()
    raise CurveError(
        f"MiniCluster {cluster.name} has no certificate, and a random one would differ each time: set "
        "flux.curveCertSecret to a Secret that `minicluster keygen` makes once, or give --curve-seed-file"
    )


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
