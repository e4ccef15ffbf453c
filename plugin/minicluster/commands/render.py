"""``minicluster render``: the output of ``helm template``, reproducibly."""

from typing import IO

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.release import adopt, helm
from minicluster.release.caller import Caller
from minicluster.render import postrender


@click.command("render")
@click.argument("source", metavar="[FILE]", type=click.File("rb"), default="-")
@options.curve_seed
@click.option(
    "--random-curve", is_flag=True, help="Generate new certificates at random. The output then differs each time."
)
def command(source: IO[bytes], seed: bytes | None, random_curve: bool) -> None:
    """Render the output of `helm template`, reproducibly.

    The output is read from FILE, or from standard input. A MiniCluster of flux-operator in it becomes what the chart
    makes of it, see docs/reference/flux-operator.md.

    \b
    Examples:
      helm template flux-sample charts/minicluster --set flux.curveCertSecret=my-curve | minicluster render
      helm template flux-sample charts/minicluster | minicluster render --curve-seed-file seed > manifests.yaml
    """
    caller = Caller(version=("--kube-version", helm.OLDEST))
    say = streams.say_once()
    data = adopt.adopt(streams.read(source), caller, say)
    streams.write(postrender.render(data, seed, random_curve, say))
