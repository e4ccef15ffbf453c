"""``minicluster template``: the manifests of a release, in one step and reproducibly."""

from collections.abc import Sequence
from pathlib import Path

import click

from minicluster import cli, door
from minicluster.commands.options import curve_seed
from minicluster.release import helm
from minicluster.release import manifests as rendered


@click.command()
@click.argument("name")
@click.option("-f", "--values", "files", multiple=True, metavar="FILE", help="Values, as Helm takes them; repeatable.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A value, as Helm takes it; repeatable.")
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the objects.")
@click.option("--chart", default=str(helm.CHART), help="Another chart, e.g. one around the package's.")
@click.option(
    "--kube-version",
    help=f"Kubernetes of the cluster, e.g. 1.36: its abilities are used. By default any from {helm.OLDEST} will do.",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write KIND-NAME.yaml for each object into this folder, and remove those of objects that are gone.",
)
@curve_seed
def template(
    name: str,
    files: Sequence[str],
    sets: Sequence[str],
    namespace: str,
    chart: str,
    kube_version: str | None,
    output_dir: Path | None,
    seed: bytes | None,
) -> None:
    """Render the release NAME to plain manifests, by `helm template` and `minicluster render`; no cluster is asked.

    The same values give the same bytes, with Helm 3 and 4. So the certificate must be there before: in a Secret that
    flux.curveCertSecret names (see `minicluster keygen`), or derived from a seed. A folder never gets a Secret.

    \b
    Examples:
      minicluster template flux-sample -f values.yaml -n team --output-dir clusters/flux-sample
      minicluster template flux-sample -f values.yaml -n team --curve-seed-file seed | kubectl apply --server-side -f -
    """
    values = [*(f"--values={file}" for file in files), *(f"--set={text}" for text in sets)]
    objects = manifests(helm.Release(name, namespace, values, chart, kube_version), seed)
    if output_dir:
        warnings = [*rendered.impossible(objects, output_dir), rendered.vanishing(objects)]
        rendered.write(objects, output_dir, f"{namespace}/{name}")
        for warning in filter(None, warnings):
            door.say(f"warning: {warning}")
    else:
        door.write(rendered.joined(objects))


def manifests(release: helm.Release, seed: bytes | None) -> list[rendered.Manifest]:
    """Return the objects of a release; new certificates come from the seed. Raises MiniClusterError."""
    return list(rendered.manifests(cli.render(helm.template(release), seed, allow_random=False)))
