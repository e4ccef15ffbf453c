"""The revisions of a release: its values, upgrades and new sizes, and the way back.

Helm lets one of two changes fail, so each waits for its turn.

An upgrade that replaces says in its description which revision was there before, so that a command that is repeated
after an interruption still knows it.
"""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from minicluster.console.streams import Say
from minicluster.errors import ToolError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.names import CHART_NAME, chart_name
from minicluster.kube.outage import RETRY_SECONDS
from minicluster.kube.port import KubePort
from minicluster.kube.tool import CommandError
from minicluster.release import helm

REVISION_MARK = "minicluster replace, before it revision "
#: How Helm's descriptions of rollbacks begin, of those that failed, too
ROLLBACK = "Rollback "
#: Statuses of revisions that Helm has finished, and of those whose Helm was killed
GOOD = ("deployed", "superseded")
PENDING_STATUSES = ("pending-install", "pending-upgrade", "pending-rollback")


class Revision(NamedTuple):
    """A revision of a release."""

    number: int
    status: str
    description: str
    chart: str = CHART_NAME  #: its name

    @property
    def before(self) -> int | None:
        """The revision that a replacement took the place of; None for any other upgrade."""
        match = re.fullmatch(re.escape(REVISION_MARK) + r"(\d+)", self.description)
        return int(match[1]) if match else None


class Change(NamedTuple):
    """What is asked of a release: Helm's options, and the values that they change."""

    options: Sequence[str]
    base: Mapping[str, Any]

    @property
    def words(self) -> list[str]:
        """Helm's options for the values, which has ``text`` on its standard input."""
        return ["--values=-", *self.options]

    @property
    def text(self) -> str:
        """The values that the release has."""
        return helm.values_text(self.base)


def way_back(history: Sequence[Revision], is_up: bool) -> int:
    """Return the revision to roll back to; ``is_up``: the present one has reached its quorum. Raises ToolError."""
    by_number = {revision.number: revision for revision in history}
    for revision in sorted(history, reverse=True):
        # one that failed may have changed the objects: what is up is then not the replacement before it
        is_up = is_up and not revision.description.startswith(ROLLBACK)
        if revision.status in GOOD:
            before = None if is_up else revision.before
            return before if before in by_number and before is not None else revision.number
    raise ToolError("the release has no revision that was deployed: uninstall it, and install it again")


def read_history(kubernetes: KubePort, release: str) -> list[Revision]:
    """Return the revisions that Helm keeps. Raises ToolError."""
    revisions = json.loads(kubernetes.helm("history", release, "--output=json"))
    return [
        Revision(int(each["revision"]), each["status"], each.get("description", ""), chart_name(each["chart"]))
        for each in revisions
    ]


def check_chart(history: Sequence[Revision], release: str) -> None:
    """Raise ToolError for a release of another chart: an upgrade with ours would remove that chart's other objects."""
    chart = max(history).chart
    if chart != CHART_NAME:
        raise ToolError(
            f"the release {release} is of the chart {chart}, around {CHART_NAME}: uninstall it to change its Job"
        )


def is_made_anew(kubernetes: KubePort, release: str) -> bool:
    """Return whether an uninstall removed all revisions of a release before that of an upgrade. Raises ToolError."""
    numbers = [revision.number for revision in read_history(kubernetes, release)]
    return bool(numbers) and min(numbers) > 1 and max(numbers) - 1 not in numbers


def read_values(kubernetes: Kubernetes, release: str) -> dict[str, Any]:
    """Return the values that a user gave. Raises ToolError."""
    return json.loads(kubernetes.helm("get", "values", release, "--output=json")) or {}


def upgrade(kubernetes: Kubernetes, release: str, change: Change, say: Say, *options: str) -> None:
    """Upgrade a release with this package's chart. Raises ToolError."""
    words = ("upgrade", release, str(helm.CHART), *change.words, "--post-renderer", "minicluster", *options)
    in_turn(release, lambda: kubernetes.helm(*words, stdin=change.text), say)


def is_refused(kubernetes: Kubernetes, release: str, change: Change, say: Say) -> ToolError | None:
    """Return why an upgrade would be refused, without `upgrade.replace`; None if it would not. Raises BusyError."""
    try:
        upgrade(kubernetes, release, change, say, "--dry-run=server", "--set=upgrade.replace=false")
    except BusyError:
        raise
    except ToolError as error:
        return error
    return None


def replace(kubernetes: Kubernetes, release: str, change: Change, before: int, say: Say) -> None:
    """Upgrade a release whose Jobs are gone, which makes them anew. Raises ToolError."""
    # the hooks of upgrade.replace do what is done already
    upgrade(kubernetes, release, change, say, f"--description={REVISION_MARK}{before}", "--no-hooks")


def roll_back(kubernetes: Kubernetes, release: str, number: int) -> None:
    """Make a revision's objects again. Raises ToolError."""
    forget_interrupted(kubernetes, release)
    kubernetes.helm("rollback", release, str(number), "--no-hooks")


def forget_interrupted(kubernetes: Kubernetes, release: str) -> None:
    """Remove the record of a Helm that was killed: as long as it is there, Helm refuses all else. Raises ToolError."""
    for revision in read_history(kubernetes, release):
        if revision.status in PENDING_STATUSES:
            record = f"sh.helm.release.v1.{release}.v{revision.number}"
            kubernetes.kubectl("delete", "secret", record, "--ignore-not-found", "--wait=false")


def check_own_chart(kubernetes: KubePort, release: str) -> None:
    """Raise ToolError for a release of another chart: an upgrade with ours would remove that chart's other objects."""
    try:
        chart = json.loads(kubernetes.helm("get", "metadata", release, "--output=json"))["chart"]
    except CommandError as error:
        if helm.NOT_FOUND in str(error):
            raise ToolError(
                f"there is no Helm release {release}: change the size where its manifests come from, such as in Git"
            ) from None
        raise ToolError(helm.explain(error)) from None
    if chart != CHART_NAME:
        raise ToolError(
            f"the release {release} is of the chart {chart}, around {CHART_NAME}: change the size by "
            f"`helm upgrade {release} {chart} --reuse-values` and that chart's value for it"
        )


def resize(kubernetes: KubePort, release: str, size: int, group: str, say: Say) -> None:
    """Change the size of a release of our chart, or that of a group, and keep all other values.

    Raises ToolError when Helm or the chart refuses.
    """

    def change() -> None:
        values = _groups(kubernetes, release, group, size) if group else ("--set", f"size={size}")
        words = ("--reuse-values", *values, "--post-renderer", "minicluster")
        kubernetes.helm("upgrade", release, str(helm.CHART), *words)

    in_turn(release, change, say)


def _groups(kubernetes: KubePort, release: str, group: str, size: int) -> tuple[str, str]:
    """Return the option with all groups: Helm doesn't merge a part of a list into that of the release."""
    values = json.loads(kubernetes.helm("get", "values", release, "--output=json"))
    groups = [{**each, "size": size} if each["name"] == group else each for each in values["groups"]]
    return "--set-json", f"groups={json.dumps(groups)}"


#: What Helm says then, and also after a Helm that was killed
BUSY = re.compile(r"another operation \(install/upgrade/rollback\) is in progress|release: already exists")
#: Seconds until the other Helm is taken for one that was killed
KILLED_SECONDS = 60.0


class BusyError(ToolError):
    """Another client has been changing a release for too long."""


def in_turn(release: str, change: Callable[[], object], say: Say) -> None:
    """Change a release, when nobody else does. Raises ToolError when Helm or the chart refuses, BusyError."""
    end, is_told = time.monotonic() + KILLED_SECONDS, False
    while True:
        try:
            change()
        except CommandError as error:
            if not BUSY.search(error.reason):
                raise ToolError(helm.explain(error)) from None
        else:
            return
        if time.monotonic() >= end:
            raise BusyError(
                f"the release {release} is being changed by another client for {KILLED_SECONDS:g} s, or a Helm was "
                f"killed while it did that: `helm rollback {release}` ends it"
            )
        if not is_told:
            say(f"{release}: another client changes it; this change comes after that")
        is_told = True
        time.sleep(RETRY_SECONDS)
