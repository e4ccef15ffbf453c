"""Post-rendering: a stream of manifests with its MiniClusters rendered, and everything else byte for byte.

Of a cluster, the ConfigMap has the settings, and each text of the user in a file of its own: no text of the user
becomes part of a line that a shell reads. The programs of ``pod/`` are in a ConfigMap that the MiniClusters of a
release share, or in a cluster's own: Helm keeps a release in one Secret of at most 1 MiB, and the programs are most of
what a MiniCluster is made of. The chart names that ConfigMap, and hands over the files of a live one: an upgrade
changes no program that live pods run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from minicluster import pod
from minicluster.errors import CurveError, SpecError
from minicluster.render import broker, curve, devices, handover, revision, settings, stream, upgrade, work
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
#: Annotation with the version that the programs are of, by which the chart knows whether a new Job can run them
VERSION_ANNOTATION = "minicluster/version"
#: How the names of Slurm's commands begin, which are in a ConfigMap of their own, and of others that are there for want
#: of room; a version without the former has but one ConfigMap
SLURM_PREFIX = "slurm"
BESIDE_SLURM = (
    *("end_idle.", "epilog.", "idle_jobs.", "ingest.", "inner_jobs.", "job_gpus.", "job_notes.", "job_peaks."),
    *("job_record.", "notify.", "preemption", "put_back.", "shared_memory.", "start_times.", "usage."),
)

#: Programs by the name of their file
Files = Mapping[str, str]
#: Namespace and name of a ConfigMap
Key = tuple[str, str]


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
    given: list[dict[str, Any]] = []

    def expand(handovers: Sequence[dict[str, Any]]) -> Iterator[Iterable[Mapping[str, Any]]]:
        given.extend(handovers)
        clusters = list(map(load, handovers))
        programs = _shared_programs(clusters)
        left = dict(programs)
        for cluster in clusters:
            for warning in remarks(cluster):
                say(f"warning: MiniCluster {cluster.name}: {warning}")
            keypair = partial(_keypair, cluster, seed, allow_random)
            yield chain(_shared_documents(cluster, left), documents(cluster, keypair, programs))
        assert not left, f"no cluster of the release has the programs {list(left)}"

    rendered = b"".join(stream.render(data, expand))
    newcomers = list(filter(None, map(handover.newcomer, given)))
    live = {name: job for one in given for name, job in handover.live_jobs(one).items()}
    before = {name: job for one in given for name, job in revision.jobs(str(one.get("last") or "")).items()}
    if not (newcomers or live or before):
        return rendered
    # live Jobs stay as they were sent
    jobs = list(revision.applied(revision.jobs_of(rendered), live))
    revision.refuse_renamed(newcomers, {revision.name_of(job) for _, job in jobs if job})
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
    cluster: MiniClusterModel, keypair: curve.Keypair, beside: Mapping[Key, Files] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the ConfigMap, and the Secret unless a Secret of the user has the certificate.

    ``beside`` are the programs in ConfigMaps of several clusters. Raises SpecError or CurveError for what can't be
    rendered.
    """
    certificate = curve.certificate(cluster, keypair)
    data = _data(cluster)
    if _has_own_programs(cluster, beside or {}):
        data = {**programs_of_brokers(), **data}
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
    maps = {"labels": dict(cluster.labels), "annotations": dict(cluster.annotations)}
    given = {key: value for key, value in maps.items() if value}
    return {"name": f"{cluster.name}-{suffix}", "namespace": cluster.namespace, **given}


def _data(cluster: MiniClusterModel) -> dict[str, str]:
    """Return the files by name: the settings, and the user's texts that are not empty."""
    data = {**programs_of_others(), "broker.toml": broker.config(cluster), "settings.sh": settings.shell(cluster)}
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


def _shared_programs(clusters: Iterable[MiniClusterModel]) -> dict[Key, Files]:
    """Return the files of each ConfigMap that several clusters share: those of the live one, else this version's."""
    by_key: dict[Key, Files] = {}
    for cluster in clusters:
        for one in cluster.programs:
            key = (cluster.namespace, one.name)
            if one.name:
                by_key[key] = one.files or by_key.get(key, programs_of_brokers())
    return by_key


def _has_own_programs(cluster: MiniClusterModel, programs: Mapping[Key, Files]) -> bool:
    """Tell whether the programs are in the cluster's own ConfigMap, whose files pods prefer.

    So they are in a document that no chart wrote, for a live Job of an older version, and where a new Job would meet
    live programs that are not those of this version.
    """
    is_new = cluster.installed is None
    names = [one.name for one in cluster.programs]
    fresh = programs_of_brokers()
    others = (programs.get((cluster.namespace, name), fresh) for name in names)
    return not names or not all(names) or (is_new and any(each != fresh for each in others))


def _shared_documents(cluster: MiniClusterModel, left: dict[Key, Files]) -> Iterable[dict[str, Any]]:
    """Yield the ConfigMaps of a cluster's programs that no cluster before it had, and take them from ``left``."""
    for one in cluster.programs:
        data = left.pop((cluster.namespace, one.name), None)
        if data is not None:
            for name, part in _parts(one.name, data):
                metadata = {
                    "name": name,
                    "namespace": cluster.namespace,
                    # it is of no single cluster
                    "labels": {key: text for key, text in cluster.labels.items() if key != stream.INSTANCE},
                    "annotations": {**cluster.annotations, VERSION_ANNOTATION: one.version},
                }
                yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": part}


def _parts(name: str, data: Files) -> Iterable[tuple[str, dict[str, str]]]:
    """Yield the files of each ConfigMap by its name: `kubectl apply` could not copy all in one annotation."""
    if not any(file.startswith(SLURM_PREFIX) for file in data):
        yield name, dict(data)
        return
    second = {file: text for file, text in data.items() if file.startswith((SLURM_PREFIX, *BESIDE_SLURM))}
    yield name, {file: text for file, text in data.items() if file not in second}
    yield f"{name}-slurm", second


def programs_of_brokers() -> Files:
    """Return the programs of the brokers' pods and services by file name."""
    return {name: text for name, text in pod.shipped().items() if name not in upgrade.NOT_OF_BROKERS}


def programs_of_others() -> Files:
    """Return the programs of other pods, which are new with each upgrade. Every cluster has its own."""
    return {name: text for name, text in pod.shipped().items() if name in upgrade.NOT_OF_BROKERS}
