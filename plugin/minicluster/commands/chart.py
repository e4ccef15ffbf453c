"""``minicluster chart``: the chart that came with the package."""

import os

import click

from minicluster.console import streams
from minicluster.release import helm


@click.group("chart")
def command() -> None:
    """Find the chart that this package contains."""


@command.command()
def path() -> None:
    """Print the chart's folder.

    \b
    Examples:
      helm install flux-sample "$(minicluster chart path)" -f values.yaml --post-renderer minicluster
    """
    streams.write(os.fsencode(helm.CHART) + b"\n")
