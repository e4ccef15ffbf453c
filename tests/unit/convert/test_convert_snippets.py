"""Warnings about commands and snippets that use what only flux-operator's pods have."""

import pytest
from conversion import Case, app, assert_converted

INIT = "uses {}, which only flux-operator's pods have"

#: A spec, the values that the conversion sets or changes (None: removed), and all warnings
CASES: dict[str, Case] = {
    "a variable of the entrypoint": (
        app(commands={"pre": "cfg=/x\necho $viewroot $HOME", "script": "command=1"}),
        app(commands={"pre": "cfg=/x\necho $viewroot $HOME", "script": "command=1"}),
        [f"containers[0].commands.pre {INIT.format('viewroot, cfg')}"],
    ),
    "a file of the operator": (
        app(command="cat /flux_operator/curve.cert"),
        app(command="cat /flux_operator/curve.cert"),
        [f"containers[0].command {INIT.format('/flux_operator')}"],
    ),
    "the list of hosts": (
        app(
            command="x",
            commands={"pre": "flux hostlist -e ${hosts} > /tmp/h\ncat /mnt/flux/config/etc/flux/system/hostlist"},
        ),
        {},
        [f"containers[0].commands.pre {INIT.format('hosts, etc/flux/system/hostlist')}"],
    ),
    "hosts of its own": (app(command="x", commands={"pre": "hosts=a,b\necho $hosts"}), {}, []),
    "the Service of older operators": (
        app(command="curl a-services.flux-service"),
        app(command="curl a-services.flux-service") | {"network": {"headlessName": "flux-service"}},
        ["network.headlessName is flux-service now: containers[0].command uses this name, flux-operator's until 2025"],
    ),
    "a snippet that exits": (
        app(command="x", commands={"pre": "if a; then\n  exit 0\nfi\n", "brokerPre": "x || exit", "post": "exit 0"}),
        {},
        [
            "containers[0].commands.pre has an exit, which is an error here before the work begins: end the snippet "
            "with return",
            "containers[0].commands.brokerPre has an exit, which is an error here before the work begins: end the "
            "snippet with return",
        ],
    ),
    "no exit": (app(command="x", commands={"pre": "exit 1\nexits\n# an exit\necho exit 0\n"}), {}, []),
    "the view's folder of software": (
        app(command="x", commands={"pre": "ls /mnt/flux/software"}),
        {},
        ["containers[0].commands.pre uses the folder software of flux-operator's view: here it is /opt/software"],
    ),
    "the view's folder somewhere else": (
        app(command="ls /f/software") | {"flux": {"container": {"mountPath": "/f"}}},
        {},
        ["containers[0].command uses the folder software of flux-operator's view: here it is /opt/software"],
    ),
    "into the view": (
        app(
            command="x",
            commands={
                "init": "cp -R /data/modules /opt/view/lib/",
                "pre": ". /mnt/flux/flux-view.sh\npython3.11 -m ensurepip\n",
                "brokerPre": "/mnt/flux/view/bin/python3.11 -m pip install .",
                "workerPre": "pip install x; cp /mnt/flux/view/bin/flux /tmp; ls /mnt/flux > /tmp/x",
                "post": "echo 1 > /mnt/flux/view/etc/x",
            },
        ),
        {},
        [
            f"containers[0].commands.{key} may write to the view, which is read-only here: install into the image "
            "or another folder"
            for key in ("init", "pre", "brokerPre", "workerPre", "post")
        ],
    ),
    "not into the view": (
        app(command="x", commands={"pre": "pip install x; mkdir /opt/mine; cp a /optional"}),
        {},
        [],
    ),
    "no view": (
        app(command="cp /mnt/flux/software /opt/software") | {"flux": {"container": {"disable": True}}},
        {},
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_convert_warns_of_snippets_that_use_the_pods_of_flux_operator(case: str) -> None:
    assert_converted(*CASES[case])
