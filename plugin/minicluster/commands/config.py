"""``minicluster config``: a person's settings, and where each comes from."""

import json
from collections.abc import Sequence

import click

from minicluster import settings
from minicluster.commands import json_keys, options
from minicluster.console import streams

HEADS = ("SETTING", "VALUE", "FROM")


CONFIG_HELP = f"""\
Show your settings, and where each comes from.

They are in ~/.config/minicluster.toml, or in the folder that XDG_CONFIG_HOME names, or in variables such as
MINICLUSTER_NAMESPACE. An option overrides a variable, which overrides the file. image, view-image and
image-registry are for values that a new MiniCluster does not have.

{json_keys.in_words("config")}

\b
Examples:
  minicluster config
  echo 'namespace = "hpc"' >> ~/.config/minicluster.toml
  MINICLUSTER_IMAGE_REGISTRY=registry.example.com minicluster create demo
"""


@click.command("config", help=CONFIG_HELP)
@options.output
def command(output: str) -> None:
    """Show your settings, and where each comes from."""
    resolved, file = settings.resolve(), settings.file()
    if output == "json":
        each = {key: {"value": one.value, "from": one.source} for key, one in resolved.items()}
        streams.write(json.dumps({"file": str(file), "settings": each}, indent=2).encode() + b"\n")
        return
    rows = [HEADS, *((key, _shown(key, one.value), one.source) for key, one in resolved.items())]
    for setting, value, source in rows:
        click.echo(f"{setting:{_width(rows, 0)}}   {value:{_width(rows, 1)}}   {source}")
    if not file.exists():
        streams.say(f"there is no {file}")


def _shown(key: str, value: str | bool | None) -> str:
    """Return a value as the file has it, or what the default means."""
    return settings.SETTINGS[key].default if value is None else json.dumps(value, ensure_ascii=False)


def _width(rows: Sequence[tuple[str, str, str]], place: int) -> int:
    return max(len(row[place]) for row in rows)
