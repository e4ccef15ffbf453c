"""The live pages of MiniClusters: the feed of each, who may see them, and what a page asks of the lead."""

import json
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from minicluster.errors import ChoiceError, MiniClusterError, one_line
from minicluster.kube.names import OUR_PREFIX
from minicluster.kube.port import KubePort
from minicluster.lead import ask
from minicluster.lead.program import BOOT
from minicluster.picture.feed import Feed
from minicluster.status.lookup import Cluster, find
from minicluster.status.reported import ASK
from minicluster.status.why import job_in_words, sizes_of

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


#: Ids of jobs, and ranks
JOB_ID, RANK_NUMBER = re.compile(r"[fƒ]?[0-9A-Za-z]{1,20}"), re.compile(r"\d{1,9}")
#: What a page may change: what it is called there, and the words of flux
CHANGES = {
    "cancel": (JOB_ID, ("cancel",)),
    "drain": (RANK_NUMBER, ("resource", "drain")),
    "undrain": (RANK_NUMBER, ("resource", "undrain")),
}
#: Why a node is drained if nobody says it; the characters of a reason
PAGE_REASON, REASON_CHARACTERS = "drained from the page", 200


def change_words(asked: Mapping[str, Any]) -> list[str]:
    """Return the words of flux for what a page asks for. Raises ChoiceError."""
    kind, target, reason = (str(asked.get(key) or "") for key in ("change", "of", "reason"))
    if kind not in CHANGES:
        raise ChoiceError(f"a page can't do {kind!r}: choose {', '.join(CHANGES)}")
    known, words = CHANGES[kind]
    if not known.fullmatch(target):
        raise ChoiceError(f"{target!r} can't be what to {kind}")
    if kind != "drain":
        return [*words, target]
    reason = one_line(reason).strip()[:REASON_CHARACTERS] or PAGE_REASON
    if reason.startswith(OUR_PREFIX):
        raise ChoiceError(f"a reason that begins with {OUR_PREFIX!r} is that of a program: give another one")
    return [*words, "--", target, reason]


def change(kube: KubePort, name: str, asked: Mapping[str, Any]) -> dict[str, str]:
    """Do what a page asks for; return what was ``done``, or the ``error``."""
    try:
        words = change_words(asked)
        lead = Cluster(kube, name).read_lead()
        if not (lead and lead.is_ready):
            raise ChoiceError(f"{name} has no lead now: nothing is changed")
        ask.ask(kube, lead.pod, "change of a page", lead.flux_words(*words))
    except MiniClusterError as error:
        return {"error": str(error)}
    return {"done": " ".join(["flux", *words])}


def job_answer(kube: KubePort, name: str, job: str) -> dict[str, Any]:
    """Return what a page shows of a job: ``why`` in sentences, its ``command`` and ``output``, or an ``error``."""
    try:
        cluster = find(kube, name)
        if 0 not in cluster.pods:
            raise ChoiceError(f"{name} has no lead now: what the page shows is all that is known")
        known = json.loads(ask.ask(kube, cluster.pods[0], "why of a job", ("/bin/sh", "-c", ASK, BOOT, job, "shown")))
    except (MiniClusterError, ValueError) as error:
        return {"error": str(error)}
    if "error" in known or not known["job"]:
        return {"error": f"{name} has no job {job} any more"}
    why = [text for text, _ in job_in_words(name, {**known, "said": []}, sizes_of(cluster))]
    return {"why": why, "command": known["command"], "output": known["output"]}
