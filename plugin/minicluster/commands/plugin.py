"""``minicluster plugin``: this package as a plugin of Helm 4, for those who installed it by pip."""

import os
import shutil
import sys
from pathlib import Path

import click
import yaml

from minicluster.console import streams
from minicluster.documents import yamlio
from minicluster.errors import ToolError
from minicluster.release import helm

PLUGIN_NAME = "minicluster"
#: The first line of a plugin.yaml that this command wrote.
FILE_MARK = "# Written by `minicluster plugin install`.\n"


@click.group("plugin")
def command() -> None:
    """Install or remove this package as a plugin of Helm 4.

    Helm 3 needs no plugin: it finds `minicluster` in PATH.
    """


@command.command()
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


@command.command()
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
    try:
        document = yamlio.load(text)
    except yaml.YAMLError:
        return None
    return document.get("name") if isinstance(document, dict) else None
