"""The Jobs of a MiniCluster that is replaced: what they would be, and the removal of those that there are.

The release is rendered without its live Job, and compared with that. The old Jobs go only if the new ones can be made,
and the work has not ended.
"""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from minicluster.cluster.find import broker_pods
from minicluster.cluster.job import end_of, recorded
from minicluster.cluster.lead import read_lead
from minicluster.console.streams import Say
from minicluster.documents import yamlio
from minicluster.errors import StateError
from minicluster.kube.kubectl import Kubernetes, ported
from minicluster.kube.tool import CommandError
from minicluster.release import helm
from minicluster.release.revisions import Change
from minicluster.render import constants, postrender, upgrade
from minicluster.render.stream import parse, split
from minicluster.status.lookup import refusals

#: Values that say where the queue is: with others, the next lead would have an empty one
PLACES = ("state.", "archive.path", "nameOverride")


class Plan(NamedTuple):
    """What a release would be."""

    record: Mapping[str, str]  #: of immutable values, which its own Job has
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
    return Plan(
        recorded(next(job for job in jobs if constants.GROUP_LABEL not in job["metadata"]["labels"])), values, jobs
    )


def changes(job: Mapping[str, Any], record: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield path, old and new text of the values that the live Job can't take."""
    yield from upgrade.changes(recorded(job), record, dict(upgrade.flat(constants.default_values())))


def check(name: str, release: str, planned: list[tuple[str, str, str]], values: Mapping[str, Any]) -> None:
    """Raise StateError for changes and values with which a replacement would lose the queue, or be refused half-way."""
    for path, was, asked in planned:
        if path.startswith(PLACES):
            raise StateError(
                f"{path} is {was}, asked is {asked}: the queue of {name} would be lost; leave it as it is, "
                "or uninstall the release and install it again"
            )
    state = values.get("state") or {}
    if not (state.get("capacity") or state.get("claimName") or (values.get("archive") or {}).get("path")):
        raise StateError(
            f"{name} keeps no queue, so it would be lost: set state.capacity, state.claimName or archive.path at the "
            f"install; or uninstall {release} and install it again"
        )
    if values.get("cleanup"):
        raise StateError(f"cleanup is true, so an upgrade without a Job of {name} is refused: set cleanup to false")


#: Seconds for the removal of the pods, beside their grace period; between two looks, which must see how the lead ended
PODS_REMOVAL_SECONDS, REMOVAL_POLL_SECONDS = 120.0, 0.25
#: Labels of the Jobs of a MiniCluster and of its groups
JOBS = "app.kubernetes.io/name=minicluster,app.kubernetes.io/instance="
#: What is no refusal of a new object: it can't be told beside the old ones, or this user may make none, as Helm does
UNTOLD = re.compile(rf"{constants.OPEN_REFUSALS}|cannot create resource")


def check_admission(kubernetes: Kubernetes, jobs: Iterable[dict[str, Any]]) -> None:
    """Ask whether Kubernetes would take new Jobs and a pod of each. Raises StateError with the reason if not."""
    for name, made in _new_objects(jobs):
        try:
            kubernetes.kubectl("create", "--dry-run=server", "--output=name", "--filename=-", stdin=json.dumps(made))
        except CommandError as error:
            if not UNTOLD.search(error.reason):
                raise StateError(
                    f"nothing has changed, as the new {made['kind']} of {name} would be refused: {error.reason}"
                ) from None


def _new_objects(jobs: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the Jobs, and a pod of each, with names that no object has, as files/replace_jobs.py does."""
    for job in jobs:
        name, template = job["metadata"]["name"], job["spec"]["template"]
        unnamed = {"generateName": f"{name[:50]}-"}
        named = {key: value for key, value in job["metadata"].items() if key != "name"}
        yield name, {**job, "metadata": {**named, **unnamed}}
        metadata = {**template["metadata"], **unnamed}
        yield name, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def remove(kubernetes: Kubernetes, name: str, say: Say, *, keeps_ended: bool) -> None:
    """Delete the Jobs, and wait until they and their pods are gone.

    Raises StateError; with ``keeps_ended`` also when the work has ended well meanwhile: a new Job would run it again.
    """
    has_ended = False
    with refusals():
        pods = kubernetes.select("pods", broker_pods(name))
        grace = max((pod["spec"].get("terminationGracePeriodSeconds", 30) for pod in pods["items"]), default=0)
        while _delete_some(kubernetes, name, keeps_ended=keeps_ended):
            pass  # until all are told to go
        end = time.monotonic() + grace + PODS_REMOVAL_SECONDS
        while pods["items"] or kubernetes.select("jobs", JOBS + name)["items"]:
            if time.monotonic() >= end:
                raise StateError(
                    f"the pods of {name} are not gone {grace + PODS_REMOVAL_SECONDS:g} s after they were told to stop: "
                    "run the same command again when they are"
                )
            time.sleep(REMOVAL_POLL_SECONDS)
            pods = kubernetes.select("pods", broker_pods(name))
            lead = read_lead(pods)
            # no pod that is told to stop ends with 0, unless the work has ended
            has_ended = has_ended or bool(lead and lead.exit_code == 0)
    if has_ended and keeps_ended:
        raise StateError(
            f"the work of {name} ended well while its pods were told to stop: run the same command again to run it "
            "once more, or uninstall the release"
        )
    say(f"{name}: the old pods are gone")


def _delete_some(kubernetes: Kubernetes, name: str, *, keeps_ended: bool) -> bool:
    """Delete the Jobs as they are now, the cluster's own first; return whether some are left to delete."""
    jobs = kubernetes.select("jobs", JOBS + name)["items"]
    live = [job for job in jobs if "deletionTimestamp" not in job["metadata"]]
    for job in sorted(live, key=lambda job: bool(job["metadata"]["name"] != name)):
        end, metadata = end_of(name, job), job["metadata"]
        if keeps_ended and metadata["name"] == name and end and end[0] == "Complete":
            raise StateError(f"the work of {name} has ended, and a new Job would run it again: nothing is removed")
        known = {key: metadata[key] for key in ("uid", "resourceVersion")}
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground", "preconditions": known}
        path = f"/apis/batch/v1/namespaces/{metadata['namespace']}/jobs/{metadata['name']}"
        try:
            kubernetes.kubectl("delete", f"--raw={path}", "--filename=-", stdin=json.dumps(body))
        except CommandError as error:
            # it has changed, or is gone: it is looked at again
            if not re.search(r"\((Conflict|NotFound)\)", error.reason):
                raise ported(error) from None
            return True
    return bool(live)
