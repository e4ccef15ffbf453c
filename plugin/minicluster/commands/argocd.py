"""``minicluster argocd``: what Argo CD's config management plugin runs."""

import os
from pathlib import Path

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.errors import ManifestError
from minicluster.release import argocd, manifests


@click.command("argocd", hidden=True)
@options.curve_seed
def command(seed: bytes | None) -> None:
    """Print the manifests of an Argo CD Application.

    The environment describes the Application, as Argo CD sets it for its plugins.
    """
    objects = manifests.render(argocd.release(os.environ, Path.cwd()), seed)
    problem = manifests.self_removing_job(objects)
    if problem:
        raise ManifestError(problem)
    streams.write(manifests.join(objects))
