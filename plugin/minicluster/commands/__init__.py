"""The command line of ``minicluster`` outside Helm: a module for each command."""

import sys
from typing import Any

import click

from minicluster import door
from minicluster.commands.argocd import argocd
from minicluster.commands.burst import burst
from minicluster.commands.chart import chart
from minicluster.commands.convert import convert
from minicluster.commands.keygen import keygen
from minicluster.commands.plugin import plugin
from minicluster.commands.render import render
from minicluster.commands.status import status
from minicluster.commands.template import template
from minicluster.errors import Interrupted, MiniClusterError, UsageError
from minicluster.release import helm


class Commands(click.Group):
    """Commands whose errors leave by the front door."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Parse the command line, and run what it says."""
        code = 0
        with door.door():
            try:
                code = super().main(*args, **(extra | {"standalone_mode": False})) or 0
            except click.exceptions.NoArgsIsHelpError as error:
                error.show()
                code = error.exit_code
            except click.UsageError as error:
                where = error.ctx.command_path if error.ctx else "minicluster"
                raise UsageError(f"{error.format_message().rstrip('.?')}; see `{where} --help`") from None
            except click.ClickException as error:
                raise MiniClusterError(error.format_message()) from None
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Click would print an empty line for Ctrl-C."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
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
