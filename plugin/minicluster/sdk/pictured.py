"""What a notebook shows of MiniClusters and jobs: small tables, and the address of a live page."""

import html
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.errors import MiniClusterError, ToolError
from minicluster.kube.port import KubePort
from minicluster.sdk.exceptions import SdkError, translated


def as_html(rows: Mapping[str, object]) -> str:
    """Return a table of texts, each of which is data; rows without a text are left out."""
    cells = (
        f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>{html.escape(str(value))}"
        "</td></tr>"
        for name, value in rows.items()
        if value not in ("", None)
    )
    return f"<table>{''.join(cells)}</table>"


def table_html(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of texts with a row of names, each text data."""

    def row(tag: str, cells: Sequence[object]) -> str:
        texts = ("" if cell is None else html.escape(str(cell)) for cell in cells)
        begin = f"<{tag} style='text-align:left'>"
        return f"<tr>{''.join(f'{begin}{text}</{tag}>' for text in texts)}</tr>"

    return f"<table>{row('th', head)}{''.join(row('td', cells) for cells in rows)}</table>"


class Pictured:
    """A MiniCluster that a notebook shows, and that has a live page."""

    name: str
    namespace: str
    _kube: KubePort
    _page: "LocalPage | None" = None

    def dashboard(self, *, port: int = 0, hosts: Sequence[str] = (), writable: bool = False) -> str:
        """Return the address of a live page on this machine, which is there until `close`; it needs Bokeh.

        ``hosts`` are other names by which your browser reaches it, such as that of a JupyterHub whose
        jupyter-server-proxy leads to it: the page is then at ``proxy/PORT/…`` there. With ``writable`` it can cancel
        jobs, and drain and undrain nodes, and asks before it does.
        Raises SdkError without Bokeh, ArgumentError for a port that is taken.
        """
        from minicluster import picture  # noqa: PLC0415 - few programs need it

        try:
            picture.check()
        except ToolError as error:
            raise SdkError(str(error)) from None
        with translated():
            if self._page is None:
                self._page = LocalPage(self._kube, self.name, self.namespace, port, hosts=hosts, writable=writable)
            return self._page.address

    def _close_page(self) -> None:
        if self._page:
            self._page.stop()
            self._page = None

    def status(self) -> dict[str, Any]:
        """Return the document of `minicluster status`."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Return what a notebook shows: name and state, or why that is not known."""
        try:
            status = self.status()
        except MiniClusterError as error:
            return as_html({"MiniCluster": self.name, "namespace": self.namespace, "unknown": error})
        nodes, jobs = status["nodes"] or {}, status["jobs"] or {}
        return as_html(
            {
                "MiniCluster": self.name,
                "namespace": self.namespace,
                "state": ": ".join(filter(None, (status["state"], status["why"]))),
                "size": f"{status['size']} of at most {status['maxSize']}",
                "nodes": ", ".join(f"{count} {state}" for state, count in nodes.items() if count),
                "jobs": ", ".join(f"{count} {state}" for state, count in jobs.items() if count),
            }
        )


class LocalPage:
    """A live page, served by a thread of its own."""

    def __init__(self, kube: KubePort, name: str, namespace: str, port: int, **options: Any) -> None:
        """Serve it, with options of `Pages`. Raises UsageError for a port that is taken."""
        # Bokeh's server is installed where pages are wanted
        from minicluster.picture.served import PageServer  # noqa: PLC0415

        self._server = PageServer(kube, where=f" -n {namespace}", **options)
        self._ready, self._error = threading.Event(), None  # type: threading.Event, MiniClusterError | None
        self._thread = threading.Thread(target=self._run, args=(port,), name="minicluster-page", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error:
            raise self._error
        self.address = self._server.pages.address(name)

    def _run(self, port: int) -> None:
        import asyncio  # noqa: PLC0415 - few programs need it

        try:
            asyncio.run(self._server.run(port, self._ready.set, takes_signals=False))
        except MiniClusterError as error:
            self._error = error
            self._ready.set()

    def stop(self) -> None:
        """Stop it."""
        self._server.stop()
        self._thread.join(10)
