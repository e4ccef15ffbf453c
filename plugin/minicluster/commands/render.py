"""``minicluster render``: the output of ``helm template``, reproducibly."""

from typing import IO

import click

from minicluster import cli, door
from minicluster.commands.options import curve_seed


@click.command()
@click.option(
    "-f",
    "--file",
    "source",
    type=click.File("rb"),
    default="-",
    help="The stream; standard input when not given.",
)
@curve_seed
@click.option("--random-curve", is_flag=True, help="Let new certificates be random: the output differs each time.")
def render(source: IO[bytes], seed: bytes | None, random_curve: bool) -> None:
    """Render the MiniClusters in the output of `helm template`, reproducibly.

    \b
    Examples:
      helm template flux-sample charts/minicluster --set flux.curveCertSecret=my-curve | minicluster render
      helm template flux-sample charts/minicluster | minicluster render --curve-seed-file seed > manifests.yaml
    """
    door.write(cli.render(door.read(source), seed, random_curve))
