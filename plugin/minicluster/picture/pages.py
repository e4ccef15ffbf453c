"""The live pages of MiniClusters: the feed of each, which pages are open, and who may see them."""

import json
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from minicluster import picture
from minicluster.kube.port import KubePort
from minicluster.picture.feed import Feed

LOCAL = "127.0.0.1"


class Listener(Protocol):
    """A page that is open."""

    def tell(self, text: str) -> None:
        """Send it a message."""


class Shown:
    """A MiniCluster that is shown: its feed, and the pages that are open."""

    def __init__(self, feed: Feed) -> None:
        self.feed, self.pages = feed, set[Listener]()

    def tick(self) -> None:
        """Tell all pages what has changed."""
        with self.feed.lock:
            changes = self.feed.timeline.changes(time.time())
        if changes and self.pages:
            text = json.dumps(changes)
            for one in [*self.pages]:
                one.tell(text)

    def all(self) -> str:
        """Return all that is shown; what has changed was told."""
        self.tick()
        with self.feed.lock:
            return json.dumps(self.feed.timeline.snapshot(time.time()))


class Pages:
    """The pages of the MiniClusters of a namespace, and who may see them."""

    def __init__(
        self,
        kube: KubePort,
        *,
        where: str = "",
        hosts: Sequence[str] = (),
        writable: bool = False,
        listing: Callable[[], Sequence[dict[str, Any]]] = tuple,
    ) -> None:
        """Take a namespace, its options for commands, and what lists its MiniClusters.

        ``hosts`` are other names by which a proxy is reached. Pages that are ``writable`` can change things.
        """
        picture.check()
        self.writable = writable
        self.kube, self.where, self.hosts, self.listing = kube, where, tuple(hosts), listing
        self.token, self.port = secrets.token_urlsafe(24), 0
        self.shown: dict[str, Shown] = {}
        self.pool = ThreadPoolExecutor(4)

    def address(self, name: str = "") -> str:
        """Return the address of a page, or that of the list."""
        return f"http://{LOCAL}:{self.port}/{self.token}/{name}{'/' if name else ''}"

    def show(self, name: str) -> Shown:
        """Return a MiniCluster to show; its feed starts with the first page."""
        if name not in self.shown:
            self.shown[name] = Shown(Feed(self.kube, name))
        return self.shown[name]

    def is_own_host(self, host: str) -> bool:
        """Return whether a request came to a name of ours: a foreign one may lead to 127.0.0.1 all the same."""
        return host in (f"{LOCAL}:{self.port}", f"localhost:{self.port}", *self.hosts)

    def is_own_origin(self, origin: str) -> bool:
        """Return whether a page of ours has made a request."""
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self.is_own_host(host)

    def tick(self) -> None:
        """Tell all pages what has changed."""
        for shown in self.shown.values():
            shown.tick()

    def close(self) -> None:
        """Stop all feeds."""
        for shown in self.shown.values():
            shown.feed.close()
        self.pool.shutdown(wait=False, cancel_futures=True)
