"""The server of live pages: on 127.0.0.1 alone, for who knows a random token, and read-only unless told otherwise.

Another page in the same browser can read or do nothing by it: Host and Origin of each request are checked. Tornado,
which Bokeh brings, is imported in this module, which is therefore imported where a page is served.
"""

import asyncio
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import PeriodicCallback
from tornado.web import Application

from minicluster.errors import UsageError
from minicluster.kube.port import KubePort
from minicluster.picture.handlers import (
    Change,
    ClusterPage,
    IndexPage,
    JobAnswer,
    LivePage,
    Nothing,
    Script,
)
from minicluster.picture.pages import LOCAL, Pages

#: Seconds between two messages to a page
TICK_SECONDS = 0.5
#: The name of a MiniCluster in an address
NAME = r"([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)"


class PageServer:
    """Serves pages until it is stopped."""

    def __init__(self, kube: KubePort, **options: Any) -> None:
        """Serve those of a namespace, with options of `Pages`."""
        self.pages = Pages(kube, **options)
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, port: int, ready: Callable[[], None], *, takes_signals: bool) -> None:
        """Serve until it is stopped. Raises UsageError if the port is taken."""
        try:
            listener = socket.create_server((LOCAL, port))
        except OSError as error:
            raise UsageError(f"--port {port} can't be used: {error.strerror}: leave it out for a free one") from None
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        listener.setblocking(False)
        self.pages.port = listener.getsockname()[1]
        server = HTTPServer(self._application())
        server.add_socket(listener)
        ticks = PeriodicCallback(self.pages.tick, TICK_SECONDS * 1000)
        ticks.start()
        for number in (signal.SIGTERM, signal.SIGHUP) if takes_signals else ():
            self._loop.add_signal_handler(number, self._stop.set)
        ready()
        try:
            await self._stop.wait()
        finally:
            ticks.stop()
            server.stop()
            await server.close_all_connections()
            self.pages.close()

    def stop(self) -> None:
        """Let `run` return; from any thread."""
        if self._loop and self._stop:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._stop.set)

    def _application(self) -> Application:
        routes = [
            (r"/([^/]+)/", IndexPage),
            (r"/([^/]+)/(bokeh|page)\.js", Script),
            (rf"/([^/]+)/{NAME}/", ClusterPage),
            (rf"/([^/]+)/{NAME}/job", JobAnswer),
            (rf"/([^/]+)/{NAME}/change", Change),
            (rf"/([^/]+)/{NAME}/live", LivePage),
        ]
        # the addresses have the token, and belong in no log
        given = {"pages": self.pages}
        return Application(
            [(path, handler, given) for path, handler in routes],
            log_function=lambda _: None,
            default_handler_class=Nothing,
            default_handler_args=given,
            websocket_ping_interval=20,
        )
