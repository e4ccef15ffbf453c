"""``minicluster simulate``: what another size or scheduling policy would have done for the jobs."""

import json
from pathlib import Path

import click

from minicluster.commands import json_keys, options
from minicluster.console import streams
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.names import options_of
from minicluster.status import simulated

#: The help, with the keys
SIMULATE_HELP = f"""\
Say what other sizes or policies would have done.

The jobs that have ended are replayed in a model of the scheduler: each is submitted when it was, and takes the
nodes, cores and time that it took. The first line is what happened, the second what the model makes of the present
size and policy: the difference is its error. It takes all nodes for alike, and knows no dependencies of jobs.

{json_keys.in_words("simulate", "With -o json each is a line:")}

\b
Examples:
  minicluster simulate flux-sample --size 4 --size 8
  minicluster simulate flux-sample --policy easy --policy fcfs
  minicluster simulate flux-sample --size 16 --html sixteen.html
"""


@click.command("simulate", help=SIMULATE_HELP)
@options.of_cluster
@click.option("--size", "sizes", multiple=True, type=click.IntRange(1, 10000), help="Nodes; may be given again.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(["fcfs", "easy", "conservative"]),
    help="Policy of the scheduler; may be given again.",
)
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture of the last one to this file, too."
)
@options.output
def command(
    name: str,
    namespace: str,
    context: str,
    sizes: tuple[int, ...],
    policies: tuple[str, ...],
    html: Path | None,
    output: str,
) -> None:
    """Say what other sizes or policies would have done."""
    kubernetes = Kubernetes(context, namespace)
    load = simulated.load_of(kubernetes, name)
    runs = simulated.simulate(load, sizes, policies)
    lines = [*simulated.outcomes(load, runs)]
    if output == "json":
        streams.write("".join(json.dumps(each._asdict()) + "\n" for each in lines).encode())
    else:
        streams.write(simulated.table(lines, streams.say, streams.width()).encode())
    if html:
        # Bokeh is installed where pictures are wanted
        from minicluster.picture import html_export  # noqa: PLC0415

        last = runs[-1]
        rows = simulated.records(load, last)
        picture = html_export.of_records(f"{load.name}: {last.size} nodes, {last.policy}", rows, len(rows))
        html_export.write(html, picture, options_of(kubernetes.namespace, kubernetes.context), streams.say)
