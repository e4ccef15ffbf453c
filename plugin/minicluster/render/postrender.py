"""Post-rendering: a stream of manifests with its MiniClusters rendered, and everything else byte for byte."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from minicluster.errors import CurveError
from minicluster.render import config, curve, devices, renamed, revision, stream
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel


def render(
    data: bytes,
    seed: bytes | None,
    allow_random: bool,
    say: Callable[[str], object] = lambda _: None,
    beside: Sequence[revision.Name] = (),
) -> bytes:
    """Return a stream with its MiniClusters rendered; new keys come from the seed, or at random where allowed.

    ``say`` is told the warnings: Helm's own command has them in its notes. ``beside`` are MiniClusters that the upgrade
    has outside of the stream. Raises MiniClusterError.
    """
    newcomers: list[renamed.Newcomer] = []
    revisions: set[str] = set()

    def expand(document: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        cluster = load(document)
        newcomers.extend(filter(None, [renamed.load(document)]))
        revisions.update(filter(None, [str(document.get("last") or "")]))
        for warning in devices.uncounted(cluster):
            say(f"warning: MiniCluster {cluster.name}: {warning}")
        return config.documents(cluster, partial(_keypair, cluster, seed, allow_random))

    rendered = b"".join(stream.render(data, expand))
    if not (newcomers or revisions):
        return rendered
    return _with_live_jobs(rendered, newcomers, revisions, beside)


def _with_live_jobs(
    rendered: bytes, newcomers: Sequence[renamed.Newcomer], revisions: set[str], beside: Sequence[revision.Name]
) -> bytes:
    """Return the stream of an upgrade, in which live Jobs stay as they were sent. Raises SpecError for a new name."""
    found = list(revision.jobs_of(rendered))
    renamed.refuse(newcomers, {*(revision.name_of(job) for _, job in found if job), *beside})
    before = {name: job for text in revisions for name, job in revision.jobs(text).items()}
    return revision.with_sent(found, before)


def _keypair(cluster: MiniClusterModel, seed: bytes | None, allow_random: bool) -> tuple[bytes, bytes]:
    if seed is not None:
        return curve.seeded_keypair(seed, cluster)
    if allow_random:
        return curve.random_keypair()
    raise CurveError(
        f"MiniCluster {cluster.name} has no certificate, and a random one would differ each time: set "
        "flux.curveCertSecret to a Secret that `minicluster keygen` makes once, or give --curve-seed-file"
    )
