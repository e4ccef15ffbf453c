"""``minicluster mcp``: the commands as tools of an AI agent, over the Model Context Protocol."""

import importlib.util
from typing import Any

import click

from minicluster.commands import options
from minicluster.errors import ToolError
from minicluster.kube.kubectl import Kubernetes

#: The tools that change something
TOOL_CHANGES = ("submit", "cancel", "scale", "delete")


class Allowed(click.ParamType):  # type: ignore[type-arg]  # older versions have no argument
    """Changes, with commas between them."""

    name = "changes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return their names."""
        names = tuple(value.split(",")) if isinstance(value, str) else value
        for name in names:
            if name not in TOOL_CHANGES:
                self.fail(f"{name!r} is no change: give some of {','.join(TOOL_CHANGES)}", param, ctx)
        return names


@click.command("mcp")
@options.namespace("Namespace of the MiniClusters; by default the current one.")
@options.context()
@click.option(
    "--allow",
    type=Allowed(),
    default=(),
    metavar=",".join(TOOL_CHANGES),
    help="Changes that there are tools for; by default none.",
)
def command(namespace: str, context: str, allow: tuple[str, ...]) -> None:
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
    if not importlib.util.find_spec("mcp"):
        raise ToolError("the package mcp is not installed: pip install 'minicluster[mcp]'")
    from minicluster.commands import mcp_server  # noqa: PLC0415 - it needs that package

    mcp_server.serve(Kubernetes(context, namespace).settled(), allow)
