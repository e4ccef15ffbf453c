"""The command line of ``minicluster`` outside Helm: a module for each command."""

import click

from minicluster import helm
from minicluster.commands.argocd import argocd
from minicluster.commands.burst import burst
from minicluster.commands.chart import chart
from minicluster.commands.convert import convert
from minicluster.commands.keygen import keygen
from minicluster.commands.plugin import plugin
from minicluster.commands.render import render
from minicluster.commands.status import status
from minicluster.commands.template import template


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(helm.version(), prog_name="minicluster")
@click.pass_context
def cli(context: click.Context) -> None:
    """Flux Framework on Kubernetes as a plain Helm release: the post-renderer of the minicluster chart.

    Helm calls it without arguments:

        helm install flux-sample charts/minicluster --post-renderer minicluster
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (argocd, burst, chart, convert, keygen, plugin, render, status, template):
    cli.add_command(command)
