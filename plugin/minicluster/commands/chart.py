"""``minicluster chart``: the chart that came with the package."""

import os

import click

from minicluster import door
from minicluster.release import helm


@click.group()
def chart() -> None:
    """Find the chart that this package carries."""


@chart.command()
def path() -> None:
    """Print the chart's folder.

    \b
    Examples:
      helm install flux-sample "$(minicluster chart path)" -f values.yaml --post-renderer minicluster
    """
    door.write(os.fsencode(helm.CHART) + b"\n")
