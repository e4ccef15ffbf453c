"""Fields of the spec, except those of containers."""

from typing import Any

import pytest
from conversion import ONE, Case, app, assert_converted, document
from minicluster.convert import convert
from minicluster.documents import yamlio


def of_the_operator(folder: str, suffix: str, certificate: str) -> str:
    """Return the broker.toml that flux-operator wrote."""
    return (
        f'[resource]\npath = "/mnt/flux/{folder}etc/flux/system/R{suffix}"\n[bootstrap]\n'
        f'curve_cert = "/mnt/flux/{certificate}"\n'
        'default_connect = "tcp://%h.flux-service.default.svc.cluster.local:%p"\nhosts = [{host = "a-0"}]\n'
        f'[archive]\ndbpath = "/mnt/flux/{folder}var/lib/flux/job-archive.sqlite"\n'
        '[sched-fluxion-qmanager]\nqueue-policy = "fcfs"\n'
    )


LEAD = {"name": "r", "address": "h", "size": 1}
#: A spec, the values that the conversion sets or changes (None: removed), and all warnings
CASES: dict[str, Case] = {
    "without logging it is not strict": (ONE, {"logging": {"strict": False}}, []),
    "without strict it is not strict": (
        {"logging": {"quiet": True}},
        {"logging": {"quiet": True, "strict": False}},
        [],
    ),
    "strict stays": ({"logging": {"strict": True}}, {"logging": {"strict": True}}, []),
    "without flux there is no connect timeout": (ONE, {"flux": {"connectTimeout": ""}}, []),
    "with flux there is one": ({"flux": {"logLevel": 3}}, {"flux": {"logLevel": 3}}, []),
    "no connect timeout when asked for": ({"flux": {"connectTimeout": ""}}, {"flux": {"connectTimeout": ""}}, []),
    "a level of 0 is unset": (
        {"flux": {"logLevel": 0}},
        {"flux": {}},
        ["flux.logLevel is 0, which flux-operator reads as 6: the values have none; for no log, set 0"],
    ),
    "no retries is 100": (
        {"backoffLimit": 0},
        {"backoffLimit": None},
        ["backoffLimit is 0, which flux-operator reads as 100: the values keep 100; for no retries, set 0 in them"],
    ),
    "sizes of 0 are unset": ({"minSize": 0, "maxSize": 0}, {"minSize": None, "maxSize": None}, []),
    "tasks of 0 stay": ({"tasks": 0}, {"tasks": 0}, []),
    "flags that flux run lacks": (
        {"flux": {"optionFlags": "--cc=1-2"}},
        {"flux": {"optionFlags": "--cc=1-2", "submitCommand": "flux submit"}},
        [],
    ),
    "flags of a command of its own": (
        {"flux": {"optionFlags": "--cc=1-2", "submitCommand": "flux bulksubmit"}},
        {"flux": {"optionFlags": "--cc=1-2", "submitCommand": "flux bulksubmit"}},
        [],
    ),
    "flags are not expanded": (
        {"flux": {"optionFlags": "--env=A=$B", "environment": {"A": "`b`"}}},
        {"flux": {"optionFlags": "--env=A=$B", "environment": {"A": "`b`"}}},
        [
            "flux.optionFlags has a $ or `: flux-operator's shell expanded it, here it is taken literally",
            "flux.environment.A has a $ or `: flux-operator's shell expanded it, here it is taken literally",
        ],
    ),
    "restarts": (
        {"pod": {"restartPolicy": "OnFailure"}},
        {"pod": {}},
        ["pod.restartPolicy is dropped: a pod that fails is replaced by the Job, up to backoffLimit"],
    ),
    "the whole security context": (
        {"pod": {"securityContext": {"fsGroup": 1, "runAsUser": 2}}},
        {"pod": {"securityContext": {"fsGroup": 1, "runAsUser": 2}}},
        ["pod.securityContext applies in full here: flux-operator ignored runAsUser"],
    ),
    "node affinity": (
        {"pod": {"nodeAffinity": {"a": ["b"]}}, "network": {"disableAffinity": True}},
        {"pod": {"nodeAffinity": {"a": ["b"]}}, "network": {"disableAffinity": True}},
        ["pod.nodeAffinity applies here: flux-operator ignored it when network.disableAffinity was set"],
    ),
    "labels of services": (
        {"pod": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "services": [{"name": "s", "image": "i"}]},
        {},
        [
            "pod.labels are only on the brokers' pods here: flux-operator put them on the services' pod too",
            "pod.annotations are only on the brokers' pods here: flux-operator put them on the services' pod too",
        ],
    ),
    "fields that do more than in flux-operator": (
        {
            "cleanup": True,
            "archive": {"path": "/a.tgz"},
            "flux": {"mungeSecret": "m", "wrap": "strace", "arch": "arm", "container": {"pythonPath": "/p"}},
        },
        {},
        [
            "flux.arch is arm: the chart uses the view image for arm; flux-operator did not change the image",
            "cleanup removes the Job with its pods: the release stays until `helm uninstall`",
            "archive.path is also written here when the cluster ends: flux-operator only restored from it",
            "flux.mungeSecret is used here, so the image must have munged: flux-operator ignored it",
            "flux.wrap wraps the workers' brokers too: flux-operator wrapped only the lead's",
            "flux.container.pythonPath is for Flux's own commands only: jobs keep their image's PYTHONPATH",
        ],
    ),
    "the policy that is refused": (
        {"flux": {"scheduler": {"queuePolicy": "fcfs"}}},
        {"flux": {"scheduler": {}}},
        [
            "flux.scheduler.queuePolicy is dropped: Fluxion's fcfs fails a job whose nodes are not up yet; "
            "the default is conservative"
        ],
    ),
    "a policy without Fluxion": (
        {"flux": {"scheduler": {"simple": True, "queuePolicy": "easy"}}},
        {"flux": {"scheduler": {"simple": True}}},
        ["flux.scheduler.queuePolicy is dropped: it is for Fluxion, and flux.scheduler.simple is set"],
    ),
    "a policy beside a broker.toml": (
        {"flux": {"scheduler": {"queuePolicy": "easy"}, "brokerConfig": "a = '\\\\$B'\n"}},
        {"flux": {"scheduler": {}, "brokerConfig": "a = '\\$B'\n"}},
        [
            "flux.scheduler.queuePolicy is dropped: flux.brokerConfig is used as given",
            "flux.brokerConfig has an unescaped $ or `: flux-operator expanded it first, here it is stored as given",
        ],
    ),
    "a broker.toml of flux-operator": (
        {"flux": {"brokerConfig": of_the_operator("view/", "-0", "view/curve/curve.cert")}},
        {
            "flux": {"brokerConfig": of_the_operator("config/", "", "config/curve/curve.cert")},
            "network": {"headlessName": "flux-service"},
        },
        [
            "flux.brokerConfig has paths below /mnt/flux/config now: flux-operator's files were below /mnt/flux/view",
            "network.headlessName is flux-service now: flux.brokerConfig uses this name",
            "flux.brokerConfig has the queue-policy fcfs, by which Fluxion may fail a job whose nodes are not up: "
            "use conservative",
        ],
    ),
    "empty texts are unset": (
        {"flux": {"submitCommand": "", "container": {"name": "", "mountPath": "", "image": ""}}},
        {"flux": {"container": {}}},
        [],
    ),
    "the work of a burst": (
        {
            "interactive": True,
            "containers": [{"image": "i", "command": "x", "batch": True}],
            "flux": {"bursting": {"leadBroker": LEAD, "clusters": [{"name": "a", "size": 1}]}},
        },
        {"interactive": None, "containers": [{"image": "i"}]},
        [
            "interactive is dropped: all pods of a cluster that joins another are workers",
            "containers[0].command is dropped: all pods of a cluster that joins another are workers",
            "containers[0].batch is dropped: all pods of a cluster that joins another are workers",
        ],
    ),
    "the script of a burst": (
        {
            "containers": [{"image": "i", "commands": {"script": "x"}, "launcher": True}],
            "flux": {"bursting": {"leadBroker": LEAD, "clusters": [{"name": "a", "size": 1}]}},
        },
        {"containers": [{"image": "i", "commands": {}}]},
        [
            "containers[0].commands.script is dropped: all pods of a cluster that joins another are workers",
            "containers[0].launcher is dropped: all pods of a cluster that joins another are workers",
        ],
    ),
    "the host list of a lead": (
        {"flux": {"leadBroker": {"name": "r", "address": "h", "size": 1, "hostlist": "r-0,b-[1-2]"}}},
        {
            "flux": {
                "bursting": {"leadBroker": {"name": "r", "address": "h", "size": 1}, "hostlist": "r-0,b-[1-2]"},
            },
        },
        ["flux.leadBroker is flux.bursting.leadBroker here", "flux.leadBroker.hostlist is flux.bursting.hostlist here"],
    ),
    "the host list of a lead, as its guide has it": (
        {
            "flux": {
                "leadBroker": {"name": "r", "address": "h", "port": 30093, "hostlist": "r-[0-3],b-[001-003]"},
            }
        },
        {
            "flux": {
                "bursting": {
                    "leadBroker": {"name": "r", "address": "h", "port": 30093},
                    "hostlist": "r-[0-3],b-[001-003]",
                },
            },
        },
        [
            "flux.leadBroker is flux.bursting.leadBroker here",
            "flux.leadBroker.hostlist is flux.bursting.hostlist here",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_convert_translates_the_fields_of_the_spec(case: str) -> None:
    assert_converted(*CASES[case])


@pytest.mark.parametrize(
    ("cluster", "noted"),
    [
        (ONE, True),
        (ONE | {"interactive": True}, True),
        (app(command="x", launcher=True), True),
        (app(command="x"), False),
        (app(command="x", batch=True), False),
        (app(commands={"script": "x"}), False),
        (ONE | {"flux": {"scheduler": {"queuePolicy": "easy"}}}, False),
        (ONE | {"flux": {"scheduler": {"simple": True}}}, False),
        (ONE | {"flux": {"brokerConfig": "a = 1"}}, False),
        (ONE | {"flux": {"bursting": {"leadBroker": LEAD, "clusters": [{"name": "a", "size": 1}]}}}, False),
    ],
    ids=str,
)
def test_convert_notes_the_other_queue_policy_where_jobs_can_wait(cluster: dict[str, Any], noted: bool) -> None:
    (values,), _ = convert(yamlio.dump(document(cluster)))
    note = (
        "# flux.scheduler.queuePolicy: flux-operator's default is fcfs, the chart's is conservative, by which a later "
        "job fills a gap\n"
    )
    assert (note in values.text) == noted
