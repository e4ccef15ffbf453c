"""``minicluster convert``: a flux-operator MiniCluster, or an MPIJob, as values."""

from pathlib import Path
from typing import IO

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.convert import ConvertError, convert


@click.command("convert")
@click.argument("source", metavar="FILE", type=click.File("rb"))
@options.output_dir("Write NAME-values.yaml for each into this folder instead of to standard output.")
def command(source: IO[bytes], output_dir: Path | None) -> None:
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
