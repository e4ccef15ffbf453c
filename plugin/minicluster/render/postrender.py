"""Post-rendering: a stream of manifests with its MiniClusters rendered, and everything else byte for byte."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from minicluster.errors import CurveError
from minicluster.render import broker, config, curve, devices, stream
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

    def expand(document: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        cluster = load(document)
        for warning in [*devices.uncounted(cluster), *broker.remarks(cluster)]:
            say(f"warning: MiniCluster {cluster.name}: {warning}")
        return config.documents(cluster, partial(_keypair, cluster, seed, allow_random))

    return b"".join(stream.render(data, expand))


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
