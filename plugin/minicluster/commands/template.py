"""``minicluster template``: the manifests of a release, in one step and reproducibly."""

from collections.abc import Sequence
from pathlib import Path

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.release import helm, manifests


@click.command("template")
@click.argument("name")
@options.values(options.VALUES_TEXT)
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A value, as for Helm; repeatable.")
@options.namespace("Namespace of the objects.", default="default")
@click.option("--chart", default=str(helm.CHART), help="Another chart, such as one around the package's.")
@click.option(
    "--kube-version",
    help=f"Use the features of this Kubernetes version, such as 1.36. By default only those of {helm.OLDEST}.",
)
@options.output_dir("Write KIND-NAME.yaml for each object into this folder, and remove those of objects that are gone.")
@options.curve_seed
def command(
    name: str,
    files: Sequence[str],
    sets: Sequence[str],
    namespace: str,
    chart: str,
    kube_version: str | None,
    output_dir: Path | None,
    seed: bytes | None,
) -> None:
    """Render a release to plain manifests, without a cluster.

    Does what `helm template` and `minicluster render` do together. The same values give the same bytes, with Helm 3
    and 4. So the certificate is not generated here: it is in a Secret that flux.curveCertSecret names (see
    `minicluster keygen`), or derived from a seed. No Secret is written into a folder.

    \b
    Examples:
      minicluster template flux-sample -f values.yaml -n team --output-dir clusters/flux-sample
      minicluster template flux-sample -f values.yaml -n team --curve-seed-file seed | kubectl apply --server-side -f -
    """
    values = [*(f"--values={file}" for file in files), *(f"--set={text}" for text in sets)]
    objects = manifests.render(helm.OfflineRelease(name, namespace, values, chart, kube_version), seed)
    if output_dir:
        warnings = [*manifests.immutable_changes(objects, output_dir), manifests.self_removing_job(objects)]
        manifests.write(objects, output_dir, f"{namespace}/{name}")
        for warning in filter(None, warnings):
            streams.say(f"warning: {warning}")
    else:
        streams.write(manifests.join(objects))
