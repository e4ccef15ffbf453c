"""Commands that draw a MiniCluster: ``dashboard`` in a browser, ``top`` on the terminal."""

import os
import sys
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from minicluster import picture
from minicluster.commands import options
from minicluster.console import streams
from minicluster.errors import OutputError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.names import options_of
from minicluster.status.lookup import find


@click.command("dashboard")
@options.cluster_or_all
@options.where
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; by default a free one.")
@click.option("--host", "hosts", multiple=True, metavar="HOST[:PORT]", help="Another name by which a proxy is reached.")
@click.option("--writable", is_flag=True, help="Let the page cancel jobs, and drain and undrain nodes.")
@click.option("--no-open", is_flag=True, help="Open no browser.")
def dashboard_command(
    name: str, namespace: str, context: str, port: int, hosts: tuple[str, ...], writable: bool, no_open: bool
) -> None:
    """Show the jobs and nodes of a MiniCluster on a live page.

    The page is served until Ctrl-C, on 127.0.0.1 only. Without NAME it lists the MiniClusters of the namespace. Its
    address, on standard output, has a random token: whoever knows it sees what you may see. The page adds nothing to
    the cluster, and changes nothing unless it is --writable: then it asks before each change.

    Needs Bokeh: pip install 'minicluster[dashboard]'. Uses kubectl, with the permissions of `minicluster status`, and
    `list` of events to know why the size changed.

    A proxy, such as jupyter-server-proxy or Open OnDemand's, needs --host with the name that your browser shows.

    \b
    Examples:
      minicluster dashboard flux-sample
      minicluster dashboard -n lab --port 8080 --no-open
    """
    import asyncio
    import tempfile

    from minicluster.status.listing import find_all

    picture.check()
    kubernetes = Kubernetes(context, namespace)
    own = find(kubernetes, name).name if name else ""
    # Bokeh's server is imported where it is used
    from minicluster.picture.served import PageServer

    server = PageServer(
        kubernetes,
        where=options_of(namespace, context),
        hosts=hosts,
        writable=writable,
        listing=lambda: find_all(kubernetes, False, datetime.now(UTC)),
    )
    with ExitStack() as stack, suppress(KeyboardInterrupt):

        def ready() -> None:
            if own:
                server.pages.show(own)
            address = server.pages.address(own)
            streams.write(f"{address}\n".encode())
            streams.say("the page is served until Ctrl-C")
            if has_screen() and not no_open:
                open_page(address, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="minicluster-"))))

        asyncio.run(server.run(port, ready, takes_signals=True))


def has_screen() -> bool:
    """Return whether a browser could show something: one in a terminal would take it."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_page(address: str, folder: Path) -> None:
    """Open an address, if there is a browser.

    It gets a file of the user's own, in a folder, that leads there: others see the words of a command, and the address
    has the token.
    """
    import webbrowser

    from minicluster.console.templates import rendered

    path = folder / "page.html"
    with suppress(OutputError, webbrowser.Error):
        streams.write_file(path, rendered(__file__, "open.html.j2", address=address).encode(), 0o600)
        webbrowser.open(path.as_uri())


@click.command("top")
@options.of_cluster
def top_command(name: str, namespace: str, context: str) -> None:
    """Show the jobs and nodes of a MiniCluster on the terminal.

    Takes the whole terminal until you press q: the queue, the nodes and the size over the last ten minutes, what
    happened, and the jobs. Keys sort the jobs, and show one with the end of its output. Without a terminal it prints
    one picture, as plain text.

    Uses kubectl, with the permissions of `minicluster status`, and `list` of events to know why the size changed.

    \b
    Example:
      minicluster top flux-sample
    """
    kubernetes = Kubernetes(context, namespace)
    own_name = find(kubernetes, name).name
    # rich is imported where it draws
    from minicluster.picture import top

    with suppress(KeyboardInterrupt):
        top.show(kubernetes, own_name)
