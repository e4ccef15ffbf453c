"""The command line of ``minicluster`` outside Helm: one module for each command, with a function ``command``."""

from typing import Any

import click

from minicluster.commands import (
    argocd,
    burst,
    burst_follow,
    chart,
    convert,
    copy,
    create,
    delete,
    flux,
    jobs,
    keygen,
    listing,
    logs,
    output,
    plugin,
    render,
    replace,
    run,
    scale,
    shell,
    status,
    template,
    wait,
    why,
)
from minicluster.errors import Interrupted
from minicluster.release import helm
from minicluster.signals import interruptible


class Commands(click.Group):
    """Commands that Ctrl-C ends without an empty line, which click would print."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Raises Interrupted for Ctrl-C."""
        try:
            with interruptible():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(helm.version())
@click.pass_context
def group(context: click.Context) -> None:
    """Flux Framework on Kubernetes as a plain Helm release.

    Helm calls it without arguments, as the post-renderer of the minicluster chart:

        helm install flux-sample charts/minicluster --post-renderer minicluster
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


burst.command.add_command(burst_follow.command)
LIVE = (burst, copy, create, delete, flux, jobs, listing, logs, output, replace, run, scale, shell, status, wait, why)
for module in (argocd, chart, convert, keygen, plugin, render, template, *LIVE):
    group.add_command(module.command)
