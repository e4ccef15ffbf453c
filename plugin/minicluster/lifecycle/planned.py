"""What a replacement would change: the release rendered without its live Job, and compared with that."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from minicluster.documents import yamlio
from minicluster.errors import StateError
from minicluster.release import helm
from minicluster.release.revisions import Change
from minicluster.render import constants, postrender, upgrade
from minicluster.render.constants import GROUP_LABEL, IMMUTABLE
from minicluster.render.stream import parse, split

#: Values that say where the queue is: with others, the next lead would have an empty one
PLACES = ("state.", "archive.path", "nameOverride")


class Plan(NamedTuple):
    """What a release would be."""

    record: dict[str, str]  #: of immutable values, which its own Job has
    values: dict[str, Any]
    jobs: list[dict[str, Any]]  #: its own and those of its groups


def render(release: str, namespace: str, change: Change, kube_version: str) -> Plan:
    """Return the release with a change. Nothing is asked of the cluster.

    Raises MiniClusterError for values that the chart or the post-renderer refuses.
    """
    data = helm.template(helm.OfflineRelease(release, namespace, change.words, kube_version=kube_version), change.text)
    values = json.loads(next(filter(None, map(parse, split(data))))["spec"])
    done = postrender.render(data, seed=None, allow_random=True)
    documents = filter(None, map(yamlio.load, split(done)))
    jobs = [document for document in documents if isinstance(document, dict) and document.get("kind") == "Job"]
    if not jobs:
        raise StateError(f"the chart makes no Job for {release}")
    return Plan(_record(next(job for job in jobs if GROUP_LABEL not in job["metadata"]["labels"])), values, jobs)


def _record(job: Mapping[str, Any]) -> dict[str, str]:
    """Return the record of a Job."""
    return dict(json.loads(job["metadata"].get("annotations", {}).get(IMMUTABLE, "{}")))


def changes(job: Mapping[str, Any], record: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield path, old and new text of the values that the live Job can't take."""
    yield from upgrade.changes(_record(job), record, dict(upgrade.flat(constants.default_values())))


def check(name: str, release: str, planned: list[tuple[str, str, str]], values: Mapping[str, Any]) -> None:
    """Raise StateError for changes and values with which a replacement would lose the queue."""
    _check_places(name, planned)
    _check_kept(name, release, values)


def _check_places(name: str, planned: list[tuple[str, str, str]]) -> None:
    """Raise StateError for a change by which the queue would be lost."""
    for path, was, asked in planned:
        if path.startswith(PLACES):
            raise StateError(
                f"{path} is {was}, asked is {asked}: the queue of {name} would be lost; leave it as it is, "
                "or uninstall the release and install it again"
            )


def _check_kept(name: str, release: str, values: Mapping[str, Any]) -> None:
    """Raise StateError for values with which a replacement would lose the queue, or would be refused half-way."""
    state = values.get("state") or {}
    if not (state.get("capacity") or state.get("claimName") or (values.get("archive") or {}).get("path")):
        raise StateError(
            f"{name} keeps no queue, so it would be lost: set state.capacity, state.claimName or archive.path at the "
            f"install; or uninstall {release} and install it again"
        )
    if values.get("cleanup"):
        raise StateError(f"cleanup is true, so an upgrade without a Job of {name} is refused: set cleanup to false")
