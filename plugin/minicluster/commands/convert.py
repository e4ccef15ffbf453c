"""``minicluster convert``: a flux-operator MiniCluster as values."""

from pathlib import Path
from typing import IO

import click

from minicluster import door
from minicluster.convert import converter


@click.command()
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
    values, warnings = converter.convert(door.read(source))
    if len(values) > 1 and output_dir is None:
        raise converter.ConvertError(f"there are {len(values)} MiniClusters in the file: give --output-dir")
    files = {output_dir / f"{one.name}-values.yaml": one.text.encode() for one in values} if output_dir else {}
    for path, data in files.items():
        if path.exists() and path.read_bytes() != data:
            raise converter.ConvertError(f"{path} is there and has other values: move it, or give another --output-dir")
    for warning in [*warnings, *(text for one in values for text in one.warnings)]:
        door.say(f"warning: {warning}")
    if output_dir is None:
        door.write(values[0].text.encode())
        return
    output_dir.mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        path.write_bytes(data)
