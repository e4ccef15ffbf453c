"""``minicluster render``: the output of ``helm template``, reproducibly."""

import sys
from typing import IO

import click

from minicluster import cli as front
from minicluster.errors import MiniClusterError


@click.command()
@click.option(
    "-f",
    "--file",
    "source",
    type=click.File("rb"),
    default="-",
    help="The stream; standard input when not given.",
)
@click.option(
    "--curve-seed-file",
    type=click.File("rb"),
    help="Derive new certificates from this secret seed: the same seed and cluster give the same certificate.",
)
@click.option("--random-curve", is_flag=True, help="Let new certificates be random: the output differs each time.")
def render(source: IO[bytes], curve_seed_file: IO[bytes] | None, random_curve: bool) -> None:
    """Render the MiniClusters in the output of `helm template`, reproducibly.

    \b
    Examples:
      helm template flux-sample charts/minicluster --set flux.curveCertSecret=my-curve | minicluster render
      helm template flux-sample charts/minicluster | minicluster render --curve-seed-file seed > manifests.yaml
    """
    seed = curve_seed_file.read().strip() if curve_seed_file else None
    if seed is not None and len(seed) < 16:
        raise click.UsageError("the curve seed has under 16 bytes: make one with `openssl rand -hex 32`")
    try:
        sys.stdout.buffer.write(front.render(source.read(), seed, random_curve))
    except MiniClusterError as error:
        front.fail(error)
