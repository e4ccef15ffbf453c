"""Options that several commands have."""

from pathlib import Path

import click


def _seed(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> bytes | None:
    seed = path.read_bytes().strip() if path else None
    if seed is not None and len(seed) < 16:
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
