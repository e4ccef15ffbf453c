"""``minicluster argocd``: what Argo CD's config management plugin runs."""

import os
from pathlib import Path

import click

from minicluster import door
from minicluster.commands.options import curve_seed
from minicluster.commands.template import manifests as generate
from minicluster.errors import ManifestError
from minicluster.release import argocd as application
from minicluster.release import manifests


@click.command(hidden=True)
@curve_seed
def argocd(seed: bytes | None) -> None:
    """Print the manifests of an Argo CD Application; all else comes from the environment that Argo CD makes."""
    objects = generate(application.release(os.environ, Path.cwd()), seed)
    problem = manifests.vanishing(objects)
    if problem:
        raise ManifestError(problem)
    door.write(manifests.joined(objects))
