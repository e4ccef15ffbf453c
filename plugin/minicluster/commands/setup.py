"""Commands of the set-up: ``plugin`` for Helm 4, ``chart``, ``config`` of a person, and ``mcp`` for AI agents."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from minicluster import settings
from minicluster.commands import json_keys, options
from minicluster.commands.given_values import Parsed
from minicluster.console import streams
from minicluster.errors import SpecError, ToolError
from minicluster.kube.kubectl import Kubernetes

PLUGIN_NAME = "minicluster"
#: The first line of a plugin.yaml that this command wrote.
FILE_MARK = "# Written by `minicluster plugin install`.\n"


@click.group("plugin")
def plugin_command() -> None:
    """Install or remove this package as a plugin of Helm 4.

    Helm 3 needs no plugin: it finds `minicluster` in PATH.
    """


@plugin_command.command()
def install() -> None:
    """Install this package as a plugin of Helm 4.

    Run it again when the package has moved.

    \b
    Examples:
      minicluster plugin install && helm install flux-sample "$(minicluster chart path)" --post-renderer minicluster
    """
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plugin.yaml").write_text(FILE_MARK + manifest(sys.executable), encoding="utf-8")
    streams.write(f"installed {folder}\n".encode())


@plugin_command.command()
def uninstall() -> None:
    """Undo `minicluster plugin install`."""
    folder = _folder()
    if folder.exists():
        shutil.rmtree(folder)
        streams.write(f"removed {folder}\n".encode())


def manifest(python: str) -> str:
    """Return the plugin.yaml of a plugin that runs this package by an interpreter.

    Helm splits a command at spaces, but not its arguments. Raises ToolError for a path that Helm can't take.
    """
    from minicluster.documents import yamlio
    from minicluster.release import helm

    if "$" in python:
        raise ToolError(f"Helm reads the $ in {python} as a variable: install the package in another folder")
    words = [python] if os.name == "nt" else ["env", python]
    text = yamlio.dump(
        {
            "apiVersion": "v1",
            "type": "postrenderer/v1",
            "name": PLUGIN_NAME,
            "version": helm.version(),
            "runtime": "subprocess",
            "runtimeConfig": {
                "platformCommand": [{"command": words[0], "args": [*words[1:], "-P", "-m", "minicluster"]}]
            },
        }
    )
    return text.decode().removeprefix("---\n")


def _folder() -> Path:
    """Return the folder of our plugin, which may not exist yet. Raises ToolError if another plugin has its name."""
    from minicluster.release import helm

    if helm.is_helm_3():
        raise ToolError(
            "helm is Helm 3, which needs no plugin: `--post-renderer minicluster` works while minicluster is in PATH"
        )
    plugins = Path(helm.run("env", "HELM_PLUGINS").decode().strip().partition(os.pathsep)[0])
    folder = plugins / PLUGIN_NAME
    for path in sorted(plugins.glob("*/plugin.yaml")):
        text = path.read_text(encoding="utf-8", errors="replace")
        ours = path.parent == folder and text.startswith(FILE_MARK)
        if not ours and (path.parent == folder or _name(text) == PLUGIN_NAME):
            raise ToolError(
                f"{path.parent} is another plugin named {PLUGIN_NAME}: remove it first, by "
                f"`helm plugin uninstall {PLUGIN_NAME}`"
            )
    return folder


def _name(text: str) -> object:
    import yaml

    from minicluster.documents import yamlio

    try:
        document = yamlio.load(text)
    except yaml.YAMLError:
        return None
    return document.get("name") if isinstance(document, dict) else None


@click.group("chart")
def chart_command() -> None:
    """Find the chart that this package contains."""


@chart_command.command()
def path() -> None:
    """Print the chart's folder.

    \b
    Examples:
      helm install flux-sample "$(minicluster chart path)" -f values.yaml --post-renderer minicluster
    """
    from minicluster.release import helm

    streams.write(os.fsencode(helm.CHART) + b"\n")


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
def config_command(output: str) -> None:
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


#: The tools that change something
TOOL_CHANGES = ("submit", "cancel", "scale", "delete")


def _allowed(text: str) -> list[str]:
    """Return the names of changes that have commas between them. Raises SpecError."""
    names = text.split(",")
    for name in names:
        if name not in TOOL_CHANGES:
            raise SpecError(f"{name!r} is no change: give some of {','.join(TOOL_CHANGES)}")
    return names


@click.command("mcp")
@options.namespace("Namespace of the MiniClusters; by default the current one.")
@options.context()
@click.option(
    "--allow",
    type=Parsed(_allowed),
    metavar=",".join(TOOL_CHANGES),
    help="Changes that there are tools for; by default none.",
)
def mcp_command(namespace: str, context: str, allow: list[str] | None) -> None:
    """Serve MiniClusters to an AI agent.

    The agent starts it, and talks to it over its standard streams, by the Model Context Protocol. It uses your
    kubeconfig, in one namespace; nothing is installed in the cluster, and no port is opened.

    The tools only read, unless --allow names changes. Each change says what is lost, and is done after you have agreed,
    in the program that runs the agent; one that can't ask you is refused.

    It needs a package more: pip install 'minicluster[mcp]'.

    \b
    Examples:
      minicluster mcp
      minicluster mcp -n lab --allow submit,cancel,scale
    """
    import importlib.util

    if not importlib.util.find_spec("mcp"):
        raise ToolError("the package mcp is not installed: pip install 'minicluster[mcp]'")
    from minicluster.commands import mcp_server

    mcp_server.serve(Kubernetes(context, namespace).settled(), allow or ())
