"""Post-rendering: a stream of manifests with its MiniClusters rendered, and everything else byte for byte."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from minicluster.errors import CurveError
from minicluster.render import config, curve, handover, revision, shared, stream
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel


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

    def expand(documents: Sequence[dict[str, Any]]) -> Iterator[Iterable[Mapping[str, Any]]]:
        clusters = list(map(load, documents))
        newcomers.extend(filter(None, map(handover.newcomer, documents)))
        for document in documents:
            live.update(handover.live_jobs(document))
        revisions.update(filter(None, (str(document.get("last") or "") for document in documents)))
        programs = shared.files(clusters)
        left = dict(programs)
        for cluster in clusters:
            for warning in config.remarks(cluster):
                say(f"warning: MiniCluster {cluster.name}: {warning}")
            keypair = partial(_keypair, cluster, seed, allow_random)
            yield chain(shared.documents(cluster, left), config.documents(cluster, keypair, programs))
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
