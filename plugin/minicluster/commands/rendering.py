"""Commands that print what Kubernetes or Helm is given: ``template``, ``render``, ``keygen`` and ``convert``."""

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.convert import ConvertError, convert
from minicluster.documents import yamlio
from minicluster.errors import SpecError, ToolError
from minicluster.kube.names import SUBDOMAIN
from minicluster.release import adopt, helm, manifests
from minicluster.release.caller import Caller
from minicluster.render import curve, postrender


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
def template_command(
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


@click.command("render")
@click.argument("source", metavar="[FILE]", type=click.File("rb"), default="-")
@options.curve_seed
@click.option(
    "--random-curve", is_flag=True, help="Generate new certificates at random. The output then differs each time."
)
def render_command(source: IO[bytes], seed: bytes | None, random_curve: bool) -> None:
    """Render the output of `helm template`, reproducibly.

    The output is read from FILE, or from standard input. A MiniCluster of flux-operator in it becomes what the chart
    makes of it, see docs/reference/flux-operator.md.

    \b
    Examples:
      helm template flux-sample charts/minicluster --set flux.curveCertSecret=my-curve | minicluster render
      helm template flux-sample charts/minicluster | minicluster render --curve-seed-file seed > manifests.yaml
    """
    caller = Caller(version=("--kube-version", helm.OLDEST))
    say = streams.say_once()
    data = adopt.adopt(streams.read(source), caller, say)
    streams.write(postrender.render(data, seed, random_curve, say))


@click.command("keygen")
@click.argument("name")
@options.namespace("Namespace of the Secret; by default the manifest names none.", default=None)
@click.option("--seal-with", metavar="CMD", help="Pipe the Secret through this command, and print its output.")
def keygen_command(name: str, namespace: str | None, seal_with: str | None) -> None:
    """Print a Secret with a new certificate.

    The Secret is for flux.curveCertSecret. It differs each time, so create it once. CMD runs without a shell and gets
    the Secret on standard input.

    \b
    Examples:
      minicluster keygen flux-curve -n team | kubectl create -f -
      minicluster keygen flux-curve -n team --seal-with kubeseal > flux-curve.yaml
    """
    for text in (name, namespace or name):
        if not re.fullmatch(SUBDOMAIN, text):
            raise SpecError(f"{text!r} is not a name in Kubernetes: use a-z, 0-9, - and .")
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    certificate = curve.text(name, *curve.random_keypair())
    secret = yamlio.dump(curve.secret(metadata, certificate))
    streams.write(secret if seal_with is None else seal(secret, seal_with))


def seal(secret: bytes, command: str) -> bytes:
    """Return what a command prints for a Secret. Raises ToolError when it is missing, fails or prints nothing."""
    try:
        words = shlex.split(command)
        if not words:
            raise ToolError("--seal-with is empty: give a command, e.g. kubeseal")
        # its stderr goes to the user only: it may quote the Secret
        done = subprocess.run(words, input=secret, stdout=subprocess.PIPE, check=False)  # noqa: S603 - no shell
    except ValueError as error:
        raise ToolError(f"--seal-with {command!r}: {error}") from None
    except OSError as error:
        raise ToolError(f"--seal-with {words[0]}: {error.strerror}: install it, or give its path") from None
    if done.returncode:
        raise ToolError(f"--seal-with {words[0]} failed with exit code {done.returncode}: nothing was sealed")
    if not done.stdout.strip():
        raise ToolError(f"--seal-with {words[0]} printed nothing: it must print the sealed Secret")
    return done.stdout


@click.command("convert")
@click.argument("source", metavar="FILE", type=click.File("rb"))
@options.output_dir("Write NAME-values.yaml for each into this folder instead of to standard output.")
def convert_command(source: IO[bytes], output_dir: Path | None) -> None:
    """Convert MiniClusters of flux-operator, and MPIJobs, to values.

    FILE has MiniClusters of v1alpha2 or v1alpha1, or MPIJobs of v2beta1; - is standard input. A field that can't be
    converted is an error. A field that works differently here, or has no effect, is a warning. The values begin with
    the command that installs them.

    \b
    Examples:
      minicluster convert minicluster.yaml > flux-sample-values.yaml
      kubectl get minicluster flux-sample -o yaml | minicluster convert - > flux-sample-values.yaml
      kubectl get miniclusters -o yaml | minicluster convert - --output-dir values
      minicluster convert mpijob.yaml > pi-values.yaml
    """
    values, warnings = convert(streams.read(source))
    if len(values) > 1 and output_dir is None:
        raise ConvertError(f"there are {len(values)} MiniClusters and MPIJobs in the file: give --output-dir")
    files = {output_dir / f"{one.name}-values.yaml": one.text.encode() for one in values} if output_dir else {}
    for path, data in files.items():
        if path.exists() and path.read_bytes() != data:
            raise ConvertError(f"{path} exists and has other values: move it, or give another --output-dir")
    for warning in [*warnings, *(text for one in values for text in one.warnings)]:
        streams.say(f"warning: {warning}")
    if output_dir is None:
        streams.write(values[0].text.encode())
        return
    output_dir.mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        path.write_bytes(data)
