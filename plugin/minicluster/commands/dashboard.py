"""``minicluster dashboard``: a live page of the jobs and nodes of a MiniCluster, on this machine."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

import click

from minicluster.commands import options
from minicluster.console import browser, streams
from minicluster.kube.kubectl import Kubernetes
from minicluster.picture import figures
from minicluster.picture.place import options_of
from minicluster.status.listing import find_all
from minicluster.status.lookup import find


@click.command("dashboard")
@options.cluster_or_all
@options.namespace("Namespace; by default the current one.")
@options.context()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; by default a free one.")
@click.option("--host", "hosts", multiple=True, metavar="HOST[:PORT]", help="Another name by which a proxy is reached.")
@click.option("--writable", is_flag=True, help="Let the page cancel jobs, and drain and undrain nodes.")
@click.option("--no-open", is_flag=True, help="Open no browser.")
def command(
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
    figures.check()
    kubernetes = Kubernetes(context, namespace)
    own = find(kubernetes, name).name if name else ""
    # Bokeh's server is imported where it is used
    from minicluster.picture.pages import Pages  # noqa: PLC0415
    from minicluster.picture.served import PageServer  # noqa: PLC0415

    pages = Pages(
        kubernetes,
        where=options_of(namespace, context),
        hosts=hosts,
        writable=writable,
        listing=lambda: find_all(kubernetes, False, datetime.now(UTC)),
    )
    files = []

    def ready() -> None:
        if own:
            pages.show(own)
        address = pages.address(own)
        streams.write(f"{address}\n".encode())
        streams.say("the page is served until Ctrl-C")
        files.append(None if no_open else browser.open_page(address))

    try:
        with suppress(KeyboardInterrupt):
            asyncio.run(PageServer(pages).run(port, ready, takes_signals=True))
    finally:
        for file in files:
            browser.remove(file)
