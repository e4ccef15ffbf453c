"""The command line of ``minicluster`` outside Helm."""

import sys
from pathlib import Path
from typing import IO

import click

from minicluster import cli as front
from minicluster.errors import MiniClusterError


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="minicluster")
@click.pass_context
def cli(context: click.Context) -> None:
    """Flux Framework on Kubernetes as a plain Helm release: the post-renderer of the minicluster chart.

    Helm calls it without arguments:

        helm install flux-sample charts/minicluster --post-renderer minicluster
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@cli.command()
@click.option(
    "-f",
    "--file",
    "source",
    type=click.File("rb"),
    default="-",
    help="The stream; standard input when not given.",
)
@click.option(
    "--curve-seed-file",
    type=click.File("rb"),
    help="Derive new certificates from this secret seed: the same seed and cluster give the same certificate.",
)
@click.option("--random-curve", is_flag=True, help="Let new certificates be random: the output differs each time.")
def render(source: IO[bytes], curve_seed_file: IO[bytes] | None, random_curve: bool) -> None:
    """Render the MiniClusters in the output of `helm template`, reproducibly.

    \b
    Examples:
      helm template flux-sample charts/minicluster --set flux.curveCertSecret=my-curve | minicluster render
      helm template flux-sample charts/minicluster | minicluster render --curve-seed-file seed > manifests.yaml
    """
    seed = curve_seed_file.read().strip() if curve_seed_file else None
    if seed is not None and len(seed) < 16:
        raise click.UsageError("the curve seed has under 16 bytes: make one with `openssl rand -hex 32`")
    try:
        sys.stdout.buffer.write(front.render(source.read(), seed, random_curve))
    except MiniClusterError as error:
        front.fail(error)


@cli.command()
@click.argument("source", metavar="FILE", type=click.File("rb"))
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write NAME-values.yaml for each MiniCluster into this folder instead of to standard output.",
)
def convert(source: IO[bytes], output_dir: Path | None) -> None:
    """Convert flux-operator MiniClusters (v1alpha2, v1alpha1) in FILE, or - for standard input, to values.

    What can't be carried over is an error; what changes, or has no meaning any more, a warning. The values
    begin with the command that installs them.

    \b
    Examples:
      minicluster convert minicluster.yaml > flux-sample-values.yaml
      kubectl get minicluster flux-sample -o yaml | minicluster convert - > flux-sample-values.yaml
      kubectl get miniclusters -o yaml | minicluster convert - --output-dir values
    """
    from minicluster import convert as converter  # noqa: PLC0415 - the others do without it

    try:
        values, warnings = converter.convert(source.read())
        if len(values) > 1 and output_dir is None:
            raise converter.ConvertError(f"there are {len(values)} MiniClusters in the file: give --output-dir")
    except MiniClusterError as error:
        front.fail(error)
    for warning in [*warnings, *(text for one in values for text in one.warnings)]:
        click.echo(f"minicluster: warning: {warning}", err=True)
    if output_dir is None:
        sys.stdout.buffer.write(values[0].text.encode())
        return
    output_dir.mkdir(parents=True, exist_ok=True)
    for one in values:
        (output_dir / f"{one.name}-values.yaml").write_text(one.text, encoding="utf-8")
