"""A model of Helm 4: releases with their revisions; a Helm that is killed leaves what it has done so far."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from minicluster.kube.tool import CommandError

from tools.simulator.indexed_job import IndexedJob
from tools.simulator.kubernetes import Kubernetes

#: How long it takes to render a release
RENDER_SECONDS = (0.2, 3.0)
#: The most revisions that it keeps, and how often it looks whether what it removes is gone
KEPT_RECORDS, GONE_POLL_SECONDS = 10, 1.0
#: Seconds for the pods of what it removes
REMOVAL_SECONDS = 600.0
PENDING = ("pending-install", "pending-upgrade", "pending-rollback")


@dataclass
class Revision:
    """A revision of a release."""

    number: int
    status: str
    values: Mapping[str, Any]
    description: str = ""


class Helm:
    """The releases, each of which has Jobs."""

    def __init__(self, kubernetes: Kubernetes, apply: Callable[[str, Mapping[str, Any]], None]) -> None:
        """``apply`` makes the objects of a release with some values."""
        self.kubernetes, self._apply = kubernetes, apply
        self.releases: dict[str, list[Revision]] = {}
        self.removes: Callable[[], None] = lambda: None  #: is told when it has begun to remove a release

    def run(self, words: Sequence[str], stdin: str) -> str:
        """Run a command. Raises CommandError."""
        command, *rest = words
        options = dict(word.partition("=")[::2] for word in rest if word.startswith("-"))
        names = [word for word in rest if not word.startswith("-")]
        name = names[names[0] == "values"] if names else ""
        sets = dict(word.removeprefix("--set=").split("=", 1) for word in rest if word.startswith("--set="))
        own: Mapping[str, Callable[[], str]] = {
            "version": lambda: "v4.0.0",
            "history": lambda: self._history(name),
            "get": lambda: self._values(name),
            "status": lambda: self._status(name),
            "upgrade": lambda: self._upgrade(name, options, {**(yaml.safe_load(stdin) or {}), **sets}),
            "rollback": lambda: self._rollback(name, int(names[1]) if names[1:] else 0),
            "uninstall": lambda: self._uninstall(name),
        }
        return own[command]()

    def _ask(self, answer: Callable[[], Any], *, changes: bool = False) -> Any:
        """Ask the API server. Raises CommandError."""
        return self.kubernetes.request(_away, answer, changes=changes)

    def _last(self, name: str) -> Revision:
        def last() -> Revision:
            if not self.releases.get(name):
                raise CommandError("helm", "release: not found")
            return self.releases[name][-1]

        found: Revision = self._ask(last)
        return self.releases[name][-1] if self.releases.get(name) else found

    def _history(self, name: str) -> str:
        self._last(name)
        keys = ("status", "description")
        rows = [
            {"revision": each.number, "chart": "minicluster-0.1.0", **{key: getattr(each, key) for key in keys}}
            for each in self.releases[name]
        ]
        return json.dumps(rows)

    def _values(self, name: str) -> str:
        return json.dumps(self._last(name).values)

    def _status(self, name: str) -> str:
        last = self._last(name)
        return json.dumps({"info": {"status": last.status}, "config": last.values})

    def _upgrade(self, name: str, options: Mapping[str, str], values: Mapping[str, Any]) -> str:
        is_new = "--install" in options and not self._ask(lambda: bool(self.releases.get(name)))
        if not is_new:
            self._check(self._last(name))
        self.kubernetes.loop.sleep(self.kubernetes.random.uniform(*RENDER_SECONDS))
        self._ask(lambda: self._refuse(name, values))
        if "--dry-run" not in options:
            status = "pending-install" if is_new else "pending-upgrade"
            self._write(name, values, status, options.get("--description", "Upgrade complete"))
        return ""

    def _refuse(self, name: str, values: Mapping[str, Any]) -> None:
        """Refuse what a live Job can't take. Raises CommandError."""
        job = self.kubernetes.jobs[name]
        was, asked = job.record.get("image", ""), values.get("image", "")
        if job.is_there and was != asked:
            raise CommandError("helm upgrade", f"execution error at (x): image is {was}, asked is {asked}")

    def _check(self, last: Revision) -> None:
        if last.status in PENDING:
            raise CommandError("helm upgrade", "another operation (install/upgrade/rollback) is in progress")
        if last.status == "uninstalling":
            raise CommandError("helm upgrade", "has no deployed releases")

    def _write(self, name: str, values: Mapping[str, Any], status: str, description: str) -> None:
        """Make a new revision: note it, make its objects, note that it is done."""
        revisions = self.releases.setdefault(name, [])
        new = Revision(revisions[-1].number + 1 if revisions else 1, status, values, "Preparing upgrade")
        self._ask(lambda: revisions.append(new), changes=True)
        try:
            self._ask(lambda: self._apply(name, values), changes=True)
        except CommandError as error:
            why = f'{status.removeprefix("pending-").capitalize()} "{name}" failed: {error.reason}'
            self._ask(lambda: self._end(revisions, new, "failed", why), changes=True)
            raise
        self._ask(lambda: self._end(revisions, new, "deployed", description), changes=True)

    def _end(self, revisions: list[Revision], new: Revision, status: str, description: str) -> None:
        for each in revisions:
            if each.status == "deployed" and (status == "deployed" or new.status == "pending-rollback"):
                each.status = "superseded"
        new.status, new.description = status, description
        del revisions[:-KEPT_RECORDS]

    def _rollback(self, name: str, number: int) -> str:
        """Make an earlier revision anew, by default the last one; also after a Helm that was killed."""
        number = number or self._last(name).number - 1
        wanted = next((each for each in self.releases[name] if each.number == number), None)
        if not wanted:
            raise CommandError("helm rollback", "release: not found")
        for each in self.releases[name]:
            each.status = "superseded" if each.status in PENDING else each.status
        self._write(name, wanted.values, "pending-rollback", f"Rollback to {number}")
        return ""

    def _uninstall(self, name: str) -> str:
        """Remove a release; it may be one whose removal was interrupted."""
        last = self._last(name)
        self._ask(lambda: setattr(last, "status", "uninstalling"), changes=True)
        self.removes()
        job = self.kubernetes.jobs[name]
        self._ask(lambda: self._delete(job), changes=True)
        end = self.kubernetes.loop.now + REMOVAL_SECONDS
        while self._ask(lambda: job.is_there):
            if self.kubernetes.loop.now > end:
                raise CommandError("helm uninstall", "context deadline exceeded")
            self.kubernetes.loop.sleep(GONE_POLL_SECONDS)
        self._ask(lambda: self.releases.pop(name, None), changes=True)
        return ""

    def _delete(self, job: IndexedJob) -> None:
        if job.size:
            self.kubernetes.shrinks(job, 0)
        self.kubernetes.delete(job)


def _away(why: str) -> CommandError:
    return CommandError("helm", f"Unable to connect to the server: {why}")
