"""``minicluster scale`` and ``list``, with stand-ins of kubectl and Helm."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from forks import Forked
from live_kubectl import FORBIDDEN, WAITS, Kubectl, lead, say
from minicluster.release import helm, revisions
from minicluster.status.listing import find_all, table
from screens import look
from status_samples import CREATED, NOW, SETTINGS, ended, flux, job, pod, suspended, waiting
from support import as_in_schema

from tools.clients import Done

END = "PodFailurePolicy"
IMAGE = "correct the image's name, or set pod.imagePullSecrets for its registry"


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    return Kubectl(tmp_path)


# scale ------------------------------------------------------------------------------------------------------------

HELM = r"""
printf '%s\n' "$*" >>"${0%/*}/helm.asked"
case "$*" in
*metadata*) echo '{"chart": "'"${CHART:-minicluster}"'"}' ;;
*history*) echo "${HISTORY:-[]}" ;;
*size=7*) echo "Error: UPGRADE FAILED: YAML parse error on minicluster: size is 7: lower it [the rest of this line \
is Helm's]: error" >&2; exit 1 ;;
esac
"""
AUTOSCALED = {"data": {"agent.json": json.dumps({"policy": {"min": 1, "max": 6}})}}
#: The lead reports two nodes, then the connection breaks; the next time it reports four
CONVERSATION = """\
read -r program
echo '{"ready": "0.88.0"}'
read -r question
printf '%s\\n' "$question" >>"$0.asked"
echo '{"key": "", "up": 2}'
if [ -e "$0.again" ]; then
  printf '%s\\n' '{"key": "", "up": 4}' '{"key": "", "online": true}'
  exit
fi
touch "$0.again"
exit 1"""


def test_scale_upgrades_the_release_with_the_chart_of_the_package(kubectl: Kubectl) -> None:
    kubectl.tool("helm", HELM)
    found = job(size=2)
    found["metadata"]["annotations"]["meta.helm.sh/release-name"] = "theirs"
    kubectl.has(job=found, configmap=None)
    assert kubectl.run("scale", "mini", "4", "-n", "lab") == Done(0, "", say("mini in namespace lab: size 2 -> 4"))
    assert (kubectl.folder / "helm.asked").read_text().splitlines() == [
        "--namespace=lab get metadata theirs --output=json",
        f"--namespace=lab upgrade theirs {helm.CHART} --reuse-values --set size=4 --post-renderer minicluster",
    ]
    assert kubectl.run("scale", "mini", "7") == Done(1, "", say("size is 7: lower it"))


@pytest.mark.parametrize(
    ("values", "way"),
    [
        ({}, "uninstall mini first, which loses its queue, or install under another name"),
        (
            {"state.capacity": "1Gi"},
            "`minicluster replace mini --set maxSize=9` makes its Job anew with a larger one and keeps the queue",
        ),
    ],
    ids=str,
)
def test_scale_refuses_a_size_above_the_largest_without_helm(
    kubectl: Kubectl, values: dict[str, str], way: str
) -> None:
    kubectl.tool("helm", HELM)
    kubectl.has(job=job(**values), configmap=None)
    said = f"the size 9 is above the maxSize of mini, 8: lower it, or {way}"
    assert kubectl.run("scale", "mini", "9") == Done(1, "", say(said))
    assert not (kubectl.folder / "helm.asked").exists()


@pytest.mark.parametrize(
    ("revisions", "removes"),
    [
        # nothing of the release as it was is left; somebody else has installed it again; a Job was replaced
        ([2], True),
        ([1, 2], False),
        ([4, 5], False),
    ],
)
def test_scale_ends_with_a_release_that_was_uninstalled_meanwhile(
    kubectl: Kubectl, revisions: list[int], removes: bool
) -> None:
    history = json.dumps([{"revision": number, "status": "deployed", "chart": "mini-1.0.0"} for number in revisions])
    kubectl.tool("helm", f"HISTORY='{history}'\n{HELM}")
    kubectl.has(job_1=job(size=2), job_2=job(size=2), configmap=None)
    anew = job(size=4)
    anew["metadata"]["uid"] = "another"
    kubectl.has(job=anew)
    done = kubectl.run("scale", "mini", "4")
    gone = say("mini was uninstalled meanwhile, so mini has no size")
    assert done == (Done(1, "", gone) if removes else Done(0, "", say("mini in namespace lab: size 2 -> 4")))
    last = (kubectl.folder / "helm.asked").read_text().splitlines()[-1]
    assert last.endswith("uninstall mini") == removes


@pytest.mark.parametrize(
    "said", ["another operation (install/upgrade/rollback) is in progress", "release: already exists"]
)
def test_scale_waits_for_another_client_that_changes_the_release(kubectl: Kubectl, said: str) -> None:
    """The same for a Helm that was killed, until it is taken for one."""
    once = 'case "$*" in *upgrade*) [ -e "$0.once" ] || { touch "$0.once"; echo "$BUSY" >&2; exit 1; } ;; esac'
    kubectl.tool("helm", f"BUSY='Error: UPGRADE FAILED: {said}'\n{once}\n{HELM}")
    kubectl.has(configmap=None)
    waits = "mini: another client changes it; this change comes after that"
    changed = "mini in namespace lab: size 4 -> 5"
    assert kubectl.run("scale", "mini", "5") == Done(0, "", say(waits, changed))


def test_scale_says_how_to_end_what_a_killed_helm_has_begun(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revisions, "KILLED_SECONDS", 0)
    said = "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"
    kubectl.tool("helm", f"case $* in *upgrade*) echo '{said}' >&2; exit 1 ;; esac{HELM}")
    kubectl.has(configmap=None)
    why = "the release mini is being changed by another client for 0 s, or a Helm was killed while it did that"
    assert kubectl.run("scale", "mini", "5") == Done(1, "", say(f"{why}: `helm rollback mini` ends it"))


@pytest.mark.parametrize(
    "said",
    [
        "plugin: {Name:minicluster Type:postrenderer/v1} not found",
        'unable to find binary at minicluster: exec: "minicluster": executable file not found in $PATH',
    ],
)
def test_scale_explains_a_helm_that_lacks_the_post_renderer(kubectl: Kubectl, said: str) -> None:
    flag = f'Error: invalid argument "minicluster" for "--post-renderer" flag: {said}'
    kubectl.tool("helm", f"case $* in *upgrade*) printf '%s' '{flag}' >&2; exit 1 ;; esac{HELM}")
    kubectl.has(configmap=None)
    message = (
        "Helm doesn't find the post-renderer: `minicluster plugin install` gives Helm 4 its plugin, and Helm 3 needs "
        "minicluster in PATH"
    )
    assert kubectl.run("scale", "mini", "4") == Done(1, "", say(message))


def test_scale_refuses_wrong_sizes_and_releases(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl.tool("helm", HELM)
    kubectl.has(configmap=None)
    message = "mini has no autoscaler that could choose its size: give a number"
    assert kubectl.run("scale", "mini", "auto") == Done(1, "", say(message))
    for size in ("0", "-1", "x", "²", "1.5"):
        done = kubectl.run("scale", "mini", "--", size)
        message = f"'{size}' is not a size: give a whole number, 1 or more, GROUP=NUMBER, or auto"
        line = f"Invalid value for '[GROUP=]SIZE|auto': {message}; see `minicluster scale --help`"
        assert done == Done(2, "", say(line))
    monkeypatch.setenv("CHART", "mine")
    message = (
        "the release mini is of the chart mine, around minicluster: change the size by `helm upgrade mini mine "
        "--reuse-values` and that chart's value for it"
    )
    assert kubectl.run("scale", "mini", "3") == Done(1, "", say(message))
    kubectl.tool("helm", "echo 'Error: release: not found' >&2; exit 1")
    message = "there is no Helm release mini: change the size where its manifests come from, such as in Git"
    assert kubectl.run("scale", "mini", "3") == Done(1, "", say(message))
    kubectl.has(job=job(end=("Complete", END)))
    message = f"mini has ended, so it has no size: Complete: {END}: said why"
    assert kubectl.run("scale", "mini", "3") == Done(1, "", say(message))


def test_scale_of_an_autoscaled_cluster_asks_its_autoscaler(kubectl: Kubectl) -> None:
    kubectl.has(configmap=AUTOSCALED)
    program = "home/bin/minicluster-scale"
    kubectl.tool(program, 'echo "$*" >>"$0.asked"')
    asks = "mini sizes itself from 1 to 6: asked it for at least 4 nodes; `minicluster scale mini auto` withdraws that"
    assert kubectl.run("scale", "mini", "4") == Done(0, "", say(asks))
    assert kubectl.run("scale", "mini", "auto").err == say("mini sizes itself from 1 to 6, by its queue alone")
    assert (kubectl.folder / f"{program}.asked").read_text() == "4\nauto\n"
    kubectl.tool(program, "echo 'minicluster-scale: no brokers' >&2; exit 1")
    assert kubectl.run("scale", "mini", "5") == Done(1, "", say("mini sizes itself: no brokers"))
    # what is certainly refused is so at once
    assert kubectl.run("scale", "mini", "9") == Done(1, "", say("mini sizes itself: 9 is over the maximum of 6"))


def test_scale_wait_goes_on_after_a_lost_connection(kubectl: Kubectl) -> None:
    kubectl.tool("helm", HELM)
    kubectl.has(configmap=None, job=job(size=2))
    kubectl.flux(CONVERSATION)
    nodes = [f"mini: {count} nodes up" for count in (2, 4)]
    assert kubectl.run("scale", "mini", "4", "--wait") == Done(0, "", say("mini in namespace lab: size 2 -> 4", *nodes))
    question = '{"key": "", "online": [4, 8], "first": 0, "more": false}'
    assert (kubectl.folder / "home/bin/flux.asked").read_text() == f"{question}\n" * 2
    kubectl.flux("exec sleep 40")
    begin = time.monotonic()
    done = kubectl.run("scale", "mini", "3", "--wait", "--timeout", "1s")
    assert time.monotonic() - begin < 20, "the deadline cuts off a lead that is silent from the start"
    message = "mini has its new size, but not all of its nodes within 1 s: see its status"
    assert done == Done(1, "", say("mini in namespace lab: size 2 -> 3", message))
    # the answer to `minicluster status`
    kubectl.tool("sh", f"echo '{json.dumps([SETTINGS, flux(online='0')])}'")
    bad = {**pod(1, waiting("ErrImagePull", "no nope:1")), "spec": {}}
    kubectl.has(job=job(size=2), pods={"items": [lead(kubectl.folder), bad]})
    message = message.replace("see its status", f"1: Pending: ErrImagePull: no nope:1: {IMAGE}")
    assert kubectl.run("scale", "mini", "3", "--wait", "--timeout", "1s") == Done(
        1, "", say("mini in namespace lab: size 2 -> 3", message)
    )


def test_scale_wait_shows_on_a_terminal_how_far_it_is(kubectl: Kubectl) -> None:
    kubectl.tool("helm", HELM)
    kubectl.has(configmap=None, job=job(size=2))
    kubectl.flux(CONVERSATION)
    seen = look(["scale", "mini", "4", "--wait"], kubectl.environment, start=Forked)
    assert seen.last == ["minicluster: mini in namespace lab: size 2 -> 4", "minicluster: mini: 4 nodes up"]
    assert seen.colours["green"] == "mini: 4 nodes up"
    below = seen.below(seen.last[0])
    assert below[0].startswith(f"mini: 2 nodes up {'━' * 10}╺{'━' * 9} 0:0")


def test_scale_wait_tells_an_end_once(kubectl: Kubectl) -> None:
    kubectl.tool("helm", HELM)
    over = {"items": [lead(kubectl.folder, ended(3))]}
    kubectl.has(configmap=None, job=job(size=2, end=("Failed", END)), pods=over)
    kubectl.has(job_1=job(size=2), job_2=job(size=2))
    last = f"mini has ended (exit code 3): Failed: {END}: said why"
    assert kubectl.run("scale", "mini", "4", "--wait") == Done(1, "", say("mini in namespace lab: size 2 -> 4", last))


# list -------------------------------------------------------------------------------------------------------------


class Answers:
    """A cluster that has these Jobs and pods."""

    def __init__(self, jobs: list[Any], pods: list[Any]) -> None:
        self.found = {"jobs": {"items": jobs}, "pods": {"items": pods}}

    def get(self, kind: str, *_: str) -> Any:
        return self.found[kind]


def named(item: Any, name: str, namespace: str = "lab", **status: Any) -> Any:
    """Return a Job, or a pod of it, with a name and a namespace."""
    labels = {**item["metadata"].get("labels", {}), "batch.kubernetes.io/job-name": name}
    metadata = {**item["metadata"], "name": name, "namespace": namespace, "labels": labels}
    return {**item, "metadata": metadata, "status": {**item.get("status", {}), **status}}


def test_list_shows_each_minicluster_with_its_state() -> None:
    theirs = named(job(size=3, **{"flux.scheduler.simple": "true"}), "b", ready=2)
    theirs["metadata"]["annotations"]["meta.helm.sh/release-name"] = "release"
    # NOW is noon in London
    times = json.dumps([{"name": "night", "cron": "30 2 * * *", "timeZone": "Europe/Berlin"}])
    nightly = job(**{"flux.scheduler.queuePolicy": "easy"})
    nightly["metadata"]["annotations"]["minicluster/schedules"] = times
    jobs = [
        named(nightly, "c", "area", ready=4),
        named(suspended(), "d"),
        theirs,
        named(job(end=("Failed", "Why"), **{"flux.brokerConfig": "x"}), "a"),
        {"metadata": {"name": "other", "namespace": "lab"}, "spec": {"completions": 1}},
    ]
    pods = [
        named(pod(0), "c", "area"),
        named(pod(0, ended(85), created="2030-01-01T11:00:00Z"), "b"),
        named(pod(0, WAITS, created=CREATED), "b"),
    ]
    rows = find_all(Answers(jobs, pods), True, NOW)  # type: ignore[arg-type]
    assert as_in_schema("list", rows[0]) == {
        "name": "c",
        "namespace": "area",
        "release": "c",
        "size": 4,
        "groups": {},
        "ready": 4,
        "state": "Running",
        "scheduler": "Fluxion (easy)",
        "age": 770,
        "next": {"schedule": "night", "at": "2030-01-02T01:30:00Z", "in": 48600},
    }
    assert table(rows, True) == (
        "NAMESPACE   NAME   RELEASE   SIZE   GROUPS   READY   STATE       SCHEDULER                    AGE      NEXT\n"
        "area        c      c         4      -        4       Running     Fluxion (easy)               12m50s   "
        "night in 13h30m\n"
        "lab         a      a         4      -        0       Failed      Fluxion if its view has it   12m50s   -\n"
        "lab         b      release   3      -        2       Starting    sched-simple                 12m50s   -\n"
        "lab         d      d         4      -        0       Suspended   Fluxion if its view has it   12m50s   -\n"
    )


def test_list_makes_two_requests_and_reports_their_errors(kubectl: Kubectl) -> None:
    kubectl.has(jobs=None, pods=None)
    assert kubectl.run("list", "-n", "lab") == Done(0, "", say("no MiniClusters in namespace lab"))
    assert kubectl.run("list", "-A") == Done(0, "", say("no MiniClusters in any namespace"))
    assert kubectl.run("list", "-o", "json") == Done(0, "[]\n", "")
    # and whether there is this namespace
    assert len(kubectl.asked()) == 7
    (kubectl.folder / "no-namespace").touch()
    message = "there is no namespace lab: `minicluster list -A` shows MiniClusters"
    assert kubectl.run("list", "-n", "lab") == Done(1, "", say(message))
    kubectl.has(jobs=FORBIDDEN.format("jobs", "list"))
    message = FORBIDDEN.format("jobs", "list") + ": ask for a Role that allows it"
    assert kubectl.run("list") == Done(1, "", say(message))
