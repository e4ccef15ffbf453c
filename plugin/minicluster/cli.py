"""The command ``minicluster``: without arguments the post-renderer, with them the tool beside it."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NoReturn

from minicluster import config, curve, spec, stream
from minicluster.errors import CurveError, MiniClusterError


def main() -> None:
    """Post-render when called by Helm (no arguments, a pipe on stdin), else parse the command line."""
    if len(sys.argv) == 1 and not sys.stdin.isatty():
        _post_render()
    else:
        from minicluster.commands import cli  # noqa: PLC0415 - click costs Helm's users 30 ms

        cli(prog_name="minicluster")


def render(data: bytes, seed: bytes | None, allow_random: bool) -> bytes:
    """Return the stream with its MiniClusters rendered; new keys come from the seed, or at random where allowed.

    Raises MiniClusterError.
    """

    def expand(document: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        cluster = spec.load(document)
        return config.documents(cluster, partial(_keypair, cluster, seed, allow_random))

    return b"".join(stream.render(data, expand))


def _keypair(cluster: spec.MiniCluster, seed: bytes | None, allow_random: bool) -> tuple[bytes, bytes]:
    if seed is not None:
        return curve.seeded_keypair(seed, cluster)
    if allow_random:
        return curve.random_keypair()
    raise CurveError(
        f"MiniCluster {cluster.name} has no certificate, and a random one would differ each time: set "
        "flux.curveCertSecret to a Secret that `minicluster keygen` makes once, or give --curve-seed-file"
    )


def _post_render() -> None:
    try:
        sys.stdout.buffer.write(render(sys.stdin.buffer.read(), seed=None, allow_random=True))
        sys.stdout.buffer.flush()
    except MiniClusterError as error:
        if "HELM_PLUGIN_NAME" in os.environ:
            sys.stdout.buffer.write(error_document(error))
        else:
            fail(error)


def fail(error: MiniClusterError) -> NoReturn:
    """End with one line on stderr and exit code 1."""
    sys.stderr.write(f"minicluster: {error}\n")
    sys.exit(1)


def error_document(error: MiniClusterError) -> bytes:
    """Return a manifest that makes Helm 4 fail with our message.

    Helm 4 throws a plugin's stderr away, but names the file of a manifest that it can't parse: this one's
    name is a list, and its file is the message.
    """
    annotations = {"postrenderer.helm.sh/postrender-filename": f"minicluster: {error}"}
    document = {
        "apiVersion": "v1",
        "kind": "Error",
        "metadata": {"name": ["error"], "annotations": annotations},
    }
    return json.dumps(document).encode() + b"\n"
