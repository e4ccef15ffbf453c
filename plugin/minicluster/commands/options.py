"""Options that several commands have."""

from pathlib import Path

import click

from minicluster import door


def _seed(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> bytes | None:
    if path is None:
        return None
    with path.open("rb") as file:
        seed = door.read(file).strip()
    if len(seed) < 16:
        raise click.UsageError("the curve seed has under 16 bytes: make one with `openssl rand -hex 32`")
    return seed


#: `--curve-seed-file FILE`, or its environment variable; gives the seed.
curve_seed = click.option(
    "--curve-seed-file",
    "seed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="MINICLUSTER_CURVE_SEED_FILE",
    callback=_seed,
    help="Derive new certificates from this secret seed: the same seed and cluster give the same certificate.",
)
