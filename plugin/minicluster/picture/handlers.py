"""What the server of live pages answers: to requests that came to our name, from our pages, with the token alone."""

import asyncio
import hmac
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from tornado.web import HTTPError, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from minicluster.console import streams
from minicluster.console.templates import rendered
from minicluster.errors import MiniClusterError, one_line
from minicluster.picture import figures, page
from minicluster.picture.pages import Pages, Shown, change, job_answer

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; "
    "font-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def way_in(host: str) -> str:
    """Return what is said to who comes by a name that isn't ours: most often through a proxy."""
    if not re.fullmatch(r"[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?(:\d{1,5})?", host):
        return "refused: this page is served to 127.0.0.1 alone\n"
    return (
        f"refused: this page does not know the name {host}.\n"
        "If it is that of your JupyterHub, Open OnDemand or another proxy, start the page anew with it:\n"
        f"  minicluster dashboard NAME --host {host}\n"
        f'or in Python:\n  cluster.dashboard(hosts=["{host}"])\n'
        "With jupyter-server-proxy its address is then that of your Jupyter, with proxy/PORT/TOKEN/NAME/ at the end.\n"
    )


class Guarded(RequestHandler):
    """Answers only requests that came to our name, from our pages, with the token."""

    def initialize(self, pages: Pages) -> None:
        """Take the pages."""
        self.pages = pages

    def set_default_headers(self) -> None:
        """Set what each answer has."""
        self.clear_header("Server")
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        """Refuse what is not for us. A wrong token is as good as no page."""
        origin, site = (self.request.headers.get(each, "") for each in ("Origin", "Sec-Fetch-Site"))
        token = self.path_args[0] if self.path_args else ""
        if not self.pages.is_own_host(self.request.host):
            self._refuse(403, way_in(self.request.host))
        elif origin and not self.pages.is_own_origin(origin):
            self._refuse(403, way_in(origin.partition("://")[2]))
        elif not hmac.compare_digest(token.encode(), self.pages.token.encode()):
            self._refuse(404)
        elif site == "cross-site" and self.request.headers.get("Sec-Fetch-Mode") != "navigate":
            self._refuse(403, "refused: another site asks for this page: open its address itself\n")

    def _refuse(self, code: int, text: str = "there is no such page\n") -> None:
        self.set_status(code)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(text)

    async def _aside(self, call: Callable[..., Any], *given: object) -> Any:
        """Return what a call that takes long returns; other requests are answered meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self.pages.pool, call, *given)

    def log_exception(self, *about: Any) -> None:
        """Log an error without the address, which has the token."""
        kind, value, _ = about
        if not isinstance(value, (HTTPError, WebSocketClosedError)):
            streams.say(f"the page has an error: {kind.__name__}: {value}".replace(self.pages.token, "TOKEN"))


class Nothing(Guarded):
    """All other addresses."""

    def prepare(self) -> None:
        """Answer at once."""
        self._refuse(404)


class IndexPage(Guarded):
    """The list of the MiniClusters."""

    async def get(self, _token: str) -> None:
        """Send it."""
        rows: Sequence[dict[str, Any]] = ()
        trouble = ""
        try:
            rows = await self._aside(self.pages.listing)
        except MiniClusterError as error:
            trouble = str(error)
        style = (page.HERE / "page.css").read_text(encoding="utf-8")
        place = self.pages.kube
        self.finish(rendered(page.__file__, "index.html.j2", style=style, rows=rows, trouble=trouble, place=place))


class Script(Guarded):
    """The script of the page, and Bokeh's, from its package."""

    def get(self, _token: str, name: str) -> None:
        """Send it."""
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        if name == "bokeh":
            self.set_header("Cache-Control", "private, max-age=3600")
        self.finish(figures.script().read_bytes() if name == "bokeh" else page.script())


class ClusterPage(Guarded):
    """The page of a MiniCluster."""

    def get(self, _token: str, name: str) -> None:
        """Send it; what it shows comes later."""
        self.finish(page.live(name, self.pages.where, writable=self.pages.writable))


class JobAnswer(Guarded):
    """What the lead tells of one job."""

    async def get(self, _token: str, name: str) -> None:
        """Ask the lead."""
        self.finish(await self._aside(job_answer, self.pages.kube, name, self.get_query_argument("id", "")))


class Change(Guarded):
    """Changes that a page asks for: those of our own alone, and only when it was started so."""

    async def post(self, _token: str, name: str) -> None:
        """Do it; of no other origin, nor of none, and not of a form."""
        kind = self.request.headers.get("Content-Type", "")
        if not self.pages.writable:
            self._refuse(403, "refused: this page changes nothing: start it with --writable\n")
        elif not self.request.headers.get("Origin") or kind != "application/json":
            self._refuse(403, "refused: this is for the page alone\n")
        else:
            try:
                asked = dict(json.loads(self.request.body))
            except (ValueError, TypeError):
                self._refuse(400, "what was asked is no JSON object\n")
                return
            said = await self._aside(change, self.pages.kube, name, asked)
            streams.say(f"from the page of {name}: {one_line(said.get('done') or said['error'])}")
            self.finish(said)


class LivePage(Guarded, WebSocketHandler):
    """The connection of a page: it is told what changes, and nothing that it says is heard."""

    def initialize(self, pages: Pages) -> None:
        """Be not connected yet."""
        super().initialize(pages)
        self._shown: Shown | None = None
        self._is_busy = self._is_behind = False

    def check_origin(self, origin: str) -> bool:
        """Take our own pages alone."""
        return self.pages.is_own_origin(origin)

    def open(self, *words: str, **_: str) -> None:
        """Tell all that is known."""
        self._shown = self.pages.show(words[1])
        text = self._shown.all()
        self._shown.pages.add(self)
        self.tell(text)

    def tell(self, text: str) -> None:
        """Send a message; a page that is slow gets all anew when it has taken what it got."""
        if self._is_busy:
            self._is_behind = True
            return
        self._is_busy = True
        self._sending = asyncio.ensure_future(self._send(text))

    async def _send(self, text: str) -> None:
        try:
            await self.write_message(text)
        except WebSocketClosedError:
            return
        self._is_busy = False
        if self._is_behind and self._shown:
            self._is_behind = False
            self.tell(self._shown.all())

    def on_message(self, message: str | bytes) -> None:
        """Hear nothing."""

    def on_close(self) -> None:
        """Tell it no more."""
        if self._shown:
            self._shown.pages.discard(self)
