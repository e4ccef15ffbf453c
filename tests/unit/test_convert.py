"""Values of flux-operator's MiniClusters: what it ran, they run.

In tests/unit/convert, NAME.yaml is an input, NAME.values.yaml all that comes of it (several files one after
the other) and NAME.warnings.txt all that stderr says.
"""

import subprocess
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from minicluster import yamlio
from minicluster.convert import converter as convert
from minicluster.errors import MiniClusterError
from minicluster.render import config
from minicluster.render.load import load
from support import front_door

HERE = Path(__file__).parent / "convert"
CASES = sorted(path.name for path in HERE.glob("*.yaml") if ".values." not in path.name)
V1ALPHA2 = "flux-framework.org/v1alpha2"
V1ALPHA1 = "flux-framework.org/v1alpha1"
#: What is written out of flux-operator's own defaults for a spec that has neither logging nor flux.
WRITTEN = {"logging": {"strict": False}, "flux": {"connectTimeout": ""}}


def document(cluster: Any, name: str = "a", version: str = V1ALPHA2, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "MiniCluster", "metadata": {"name": name} | metadata, "spec": cluster}


def run(*arguments: str, stdin: object = b"") -> Result:
    data = stdin if isinstance(stdin, bytes) else yamlio.dump(stdin)
    return CliRunner().invoke(front_door, ["convert", *arguments], input=data)


def converted(cluster: Any, **fields: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the values and the warnings, without the cluster's name."""
    (values,), _ = convert.convert(yamlio.dump(document(cluster, **fields)))
    return yamlio.load(values.text), [warning.removeprefix("MiniCluster a: ") for warning in values.warnings]


def refused(cluster: Any, **fields: Any) -> str:
    with pytest.raises(MiniClusterError) as error:
        converted(cluster, **fields)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("case", CASES)
def test_whole_outputs(case: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    done = run(str(HERE / case), "--output-dir", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "")
    found = {
        "values.yaml": "".join(path.read_text() for path in sorted(tmp_path.iterdir())),
        "warnings.txt": done.stderr,
    }
    for suffix, text in found.items():
        golden = HERE / case.replace(".yaml", f".{suffix}")
        if request.config.getoption("--update-golden", default=False):
            golden.write_text(text)
        assert text == golden.read_text()


@pytest.mark.parametrize("case", ["hello-world.yaml", "complete.yaml"])
def test_one_cluster_goes_to_standard_output(case: str) -> None:
    for done in (run(str(HERE / case)), run("-", stdin=(HERE / case).read_bytes())):
        assert done.exit_code == 0
        assert done.stdout == (HERE / case.replace(".yaml", ".values.yaml")).read_text()
        assert done.stderr == (HERE / case.replace(".yaml", ".warnings.txt")).read_text()


def test_what_kubectl_gets_is_converted() -> None:
    live = document({"containers": [{"image": "i", "command": None}]}) | {"status": {"size": 1}}
    done = run("-", stdin={"apiVersion": "v1", "kind": "List", "items": [live]})
    assert (done.exit_code, done.stderr) == (0, "")
    assert yaml.safe_load(done.stdout) == {"containers": [{"image": "i"}]} | WRITTEN


def test_several_clusters_need_a_folder() -> None:
    done = run(str(HERE / "bursting.yaml"))
    message = "minicluster: there are 2 MiniClusters in the file: give --output-dir\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", message)


def test_nothing_is_written_when_one_of_several_is_wrong(tmp_path: Path) -> None:
    stream = yaml.safe_dump_all([document({"containers": [{}]}), document({"siez": 1}, name="b")]).encode()
    done = run("-", "--output-dir", str(tmp_path / "new"), stdin=stream)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "minicluster: MiniCluster b: siez is not a field; did you mean size?\n"
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_there_is_not_lost(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    stream = (HERE / "bursting.yaml").read_bytes()
    assert run("-", "--output-dir", str(folder), stdin=stream).exit_code == 0
    texts = {path: path.read_bytes() for path in folder.iterdir()}
    again = run("-", "--output-dir", str(folder), stdin=stream)
    assert (again.exit_code, {path: path.read_bytes() for path in folder.iterdir()}) == (0, texts)
    first, last = sorted(texts)
    first.unlink()
    last.write_text("mine: true\n")
    done = run("-", "--output-dir", str(folder), stdin=stream)
    message = f"minicluster: {last} exists and has other values: move it, or give another --output-dir\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", message)
    assert {path: path.read_text() for path in folder.iterdir()} == {last: "mine: true\n"}


def test_it_reads_what_kubectl_reads() -> None:
    text = (
        f"apiVersion:\t{V1ALPHA2}\nkind: MiniCluster\t# x\nmetadata: {{name:\ta}}\nspec:\n  size:\t2\n  containers:\n"
    )
    text += "  - image: !!binary aQ==\n  pod:\n    labels: {2: x, true: z}\n"
    (values,), _ = convert.convert(text.encode())
    found = yamlio.load(values.text)
    assert (values.name, found["size"]) == ("a", 2)
    assert found["containers"] == [{"image": "i"}]
    assert found["pod"] == {"labels": {"2": "x", "true": "z"}}


ONE = {"containers": [{"image": "i"}]}
STREAMS: list[tuple[bytes, str]] = [
    (b"", "there is no MiniCluster of flux-framework.org in the file: give the one for flux-operator"),
    (b"a: [", "the file is not YAML: did not find expected node content at line 2"),
    (b"a\0b", "the file is not YAML: it can not be read"),
    (b"kind: Pod", "there is no MiniCluster of flux-framework.org in the file: give the one for flux-operator"),
    (
        b"{kind: MiniCluster, apiVersion: post-renderer-required.add--post-renderer-minicluster/v1}",
        "there is no MiniCluster of flux-framework.org in the file: give the one for flux-operator",
    ),
    (
        yaml.safe_dump(document(ONE, version="flux-framework.org/v1")).encode(),
        "MiniCluster a is of v1: v1alpha1 and v1alpha2 are known",
    ),
    (
        yaml.safe_dump_all([document(ONE), document(ONE)]).encode(),
        "two MiniClusters are named a: give each a file of its own",
    ),
    (yaml.safe_dump(document(None)).encode(), "MiniCluster a has no spec: give the whole document"),
    (
        yaml.safe_dump(document(ONE, name="")).encode(),
        "a MiniCluster has no metadata.name: give it the one that the release will have",
    ),
    (
        yaml.safe_dump(document(ONE, name="../a")).encode(),
        "the name '../a' is not a DNS label: use a-z, 0-9 and - (nameOverride, or the release's name)",
    ),
    (
        yaml.safe_dump(document(ONE) | {"metadata": {"name": "a", "namespace": "team\nsize: 9"}}).encode(),
        "MiniCluster a: the namespace 'team\\nsize: 9' is not a DNS label: use a-z, 0-9 and -",
    ),
]


@pytest.mark.parametrize(("data", "message"), STREAMS)
def test_streams_that_can_not_be_converted(data: bytes, message: str) -> None:
    done = run("-", stdin=data)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"minicluster: {message}\n")


def app(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"image": "i"} | fields]}


def pair(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"image": "i", "runFlux": True}, {"image": "i", "name": "s"} | fields]}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"siez": 1} | ONE, "siez is not a field; did you mean size?"),
    (app(comand="x"), "containers[0].comand is not a field; did you mean command?"),
    ({"size": 0} | ONE, "size is 0: must be at least 1"),
    ({"deadlineSeconds": 0} | ONE, "deadlineSeconds is 0: must be at least 1"),
    ({"size": "2"} | ONE, 'size is "2": must be integer'),
    (app(environment={"A": 1}), "containers[0].environment.A is 1: must be string"),
    (app(command="x", commands={"script": "y"}), "containers[0] has command and commands.script: give the one that"),
    (app(command="x", batch=True, launcher=True), "containers[0] has batch and launcher: give the one that fits"),
    (app(commands={"script": "y"}, batch=True), "containers[0].batch is set: its command must be a string, one"),
    (
        app(volumes={"v": {"path": "/v"}}),
        "containers[0].volumes.v has no source: give exactly one of claimName, hostPath, secretName, configMapName, "
        "emptyDir, csiDriver",
    ),
    (app(volumes={"v": {"secretName": "s"}}), "containers[0].volumes.v has no path: say where to mount it"),
    (
        {"services": [{"name": "s", "image": "i", "commands": {"pre": "x"}}]} | ONE,
        "services[0].commands.pre is set",
    ),
    ({"services": [{"image": "i"}]} | ONE, "services[0] has no name: give it one; only the runner needs none"),
    ({"flux": {"brokerConfig": "a b"}} | ONE, "flux.brokerConfig is not TOML: "),
    ({"flux": {"optionFlags": "'"}} | ONE, 'flux.optionFlags is "\'": No closing quotation; close the quote'),
    (
        {"containers": [{"image": "i"}, {"image": "i"}]},
        "none of the 2 containers has runFlux: true: set it on the one that runs Flux",
    ),
]


@pytest.mark.parametrize(("cluster", "message"), REFUSED)
def test_what_can_not_be_carried_over_is_an_error(cluster: dict[str, Any], message: str) -> None:
    assert refused(cluster).removeprefix("MiniCluster a: ").startswith(message)


def test_a_volume_of_a_storage_class_is_an_error() -> None:
    cluster = app(volumes={"v": {"path": "/v"}}) | {"volumes": {"v": {"path": "/h", "storageClass": "gcs"}}}
    assert refused(cluster, version=V1ALPHA1) == (
        "containers[0].volumes.v is of the storage class gcs, made by the operator: make a claim of it, and give its "
        "name as containers[0].volumes.v.claimName"
    )


DOLLAR = "has a $ or `: each task expands it here, flux-operator did once, on the lead"
LISTED = "is a list of words now: to flux-operator {} were words; write a text for a shell"
SHELL = "is run by a shell here: to flux-operator {} were words of the program"
BREAKS = "has double quotes, on which flux-operator breaks: here a shell runs it as written"
SINGLE = "has single quotes, which flux-operator gave to the program: here a shell reads them"

# A command, what it becomes, and the warnings about it. What flux-operator gives the program is what
# `command="TEXT"; printf '<%s>' ${command}` shows.
COMMANDS: list[tuple[str, object, list[str]]] = [
    ("echo hello", "echo hello", []),
    ("echo hello\n", "echo hello\n", []),
    ('echo "hello"', 'echo "hello"', []),
    ('echo "hello world"', 'echo "hello world"', [BREAKS]),
    ('sh -c "a;b"', 'sh -c "a;b"', [BREAKS]),
    ("echo 'a b'", "echo 'a b'", [SINGLE]),
    ("sh -c 'a && b'", "sh -c 'a && b'", [SINGLE]),
    ("a && b", ["a", "&&", "b"], [LISTED.format("&&")]),
    ("curl h/?a=1&b=2", ["curl", "h/?a=1&b=2"], [LISTED.replace("now", "now, without patterns").format("&")]),
    ("a | b > c; d", ["a", "|", "b", ">", "c;", "d"], [LISTED.format("| > ;")]),
    ("a #1 ~ x~y a#b", ["a", "#1", "~", "x~y", "a#b"], [LISTED.format("# ~")]),
    ("a {b,c} {d}", ["a", "{b,c}", "{d}"], [LISTED.format("{b,c}")]),
    (r"printf a\n", ["printf", r"a\n"], [LISTED.format("\\")]),
    (r"a \$X \\ \`b", r"a \$X \\ \`b", []),
    (r"a \$X & b", ["a", "$X", "&", "b"], [LISTED.format("&")]),
    ("lmp -v x 2\n  -in in.lj\n", ["lmp", "-v", "x", "2", "-in", "in.lj"], [LISTED.format("its lines")]),
    ("lmp -v x 2 \\\n  -in in.lj\n", "lmp -v x 2 \\\n  -in in.lj\n", []),
    ("echo $HOSTNAME", "echo $HOSTNAME", [DOLLAR]),
    ("echo $(hostname; date) `id`", "echo $(hostname; date) `id`", [DOLLAR]),
    ("echo cost: 5$", "echo cost: 5$", []),
    ("echo ${X} && b", "echo ${X} && b", [DOLLAR, SHELL.format("&&")]),
    ("ls *.txt", "ls *.txt", [DOLLAR.replace("a $ or `", "a pattern")]),
]


@pytest.mark.parametrize(("command", "expected", "warnings"), COMMANDS)
def test_the_command_of_the_runner(command: str, expected: object, warnings: list[str]) -> None:
    values, found = converted(app(command=command))
    assert values["containers"][0]["command"] == expected
    assert found == [f"containers[0].command {warning}" for warning in warnings]


@pytest.mark.parametrize("command", ["a $X", "a `b`", r"a \n"])
def test_v1alpha1_expanded_nothing_in_a_command(command: str) -> None:
    values, found = converted(app(command=command), version=V1ALPHA1)
    assert found == []
    shell = subprocess.run(
        ["sh", "-c", f"printf '<%s>' {values['containers'][0]['command']}"], capture_output=True, text=True, check=True
    )
    assert shell.stdout == "".join(f"<{word}>" for word in command.split())


BATCH = "containers[0].batch numbers the files of its jobs from 1: flux-operator did from 0, with blank lines"
INIT = "uses {}, which flux-operator's pods have and these do not"

# A spec, the keys of the values that the conversion sets or changes (None: it is gone), and all warnings.
TRAPS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
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
    "a level of 0 is 6": (
        {"flux": {"logLevel": 0}},
        {"flux": {}},
        ["flux.logLevel is 0: flux-operator took it for its 6, kept; say 0 here to have no log"],
    ),
    "no retries is 100": (
        {"backoffLimit": 0},
        {"backoffLimit": None},
        ["backoffLimit is 0: flux-operator took it for its 100, kept; say 0 here to have no retries"],
    ),
    "sizes of 0 are unset": ({"minSize": 0, "maxSize": 0}, {"minSize": None, "maxSize": None}, []),
    "tasks of 0 stay": ({"tasks": 0}, {"tasks": 0}, []),
    "an image of its own": (
        {"containers": [{"command": "x"}]},
        {"containers": [{"command": "x", "image": convert.IMAGE}]},
        [],
    ),
    "the runner has the cluster's name": (
        app(name="n"),
        app(),
        ["containers[0].name is dropped: flux-operator gave this container the cluster's name"],
    ),
    "the runner is wrapped": (
        app(noWrapEntrypoint=True),
        app(),
        ["containers[0].noWrapEntrypoint is dropped: Flux is this container's entrypoint"],
    ),
    "interactive runs no command": (
        app(command="x", batch=True) | {"interactive": True},
        app() | {"interactive": True},
        [
            "containers[0].command is dropped: interactive is true, so flux-operator did not run it; to run it, drop "
            "interactive instead",
            "containers[0].batch is dropped: there is no command to run",
        ],
    ),
    "a launcher of nothing": (
        app(launcher=True),
        app(),
        ["containers[0].launcher is dropped: there is no command to run"],
    ),
    "raw without batch": (
        app(command="x", batchRaw=True),
        app(command="x"),
        ["containers[0].batchRaw is dropped: batch is not set"],
    ),
    "servicePre of the runner": (
        app(commands={"servicePre": "x"}),
        app(commands={}),
        ["containers[0].commands.servicePre is dropped: flux-operator ran it in the other containers only"],
    ),
    "a batch is numbered from 1": (
        app(batch=True, command="echo 1\n\necho 2\n"),
        app(batch=True, command="echo 1\n\necho 2\n"),
        [BATCH],
    ),
    "a batch between quotes": (
        app(batch=True, command='echo \\$A "b  c"\n'),
        app(batch=True, command='echo $A "b  c"\n'),
        ["containers[0].command has double quotes, which flux-operator lost: here they hold", BATCH],
    ),
    "a batch is expanded": (
        app(batch=True, batchRaw=True, command="echo $A\n"),
        app(batch=True, batchRaw=True, command="echo $A\n"),
        ["containers[0].command has a $ or `: the job expands it here, flux-operator did when it wrote the batch"],
    ),
    "a script is unescaped": (
        app(commands={"script": "#!/bin/bash\necho \\$A \\`b\\` \\\\ \\n\n"}),
        app(commands={"script": "#!/bin/bash\necho $A `b` \\ \\n\n"}),
        [],
    ),
    "a script is expanded, and ends at EOF": (
        app(commands={"script": "cat $A\nEOF\n"}),
        app(commands={"script": "cat $A\nEOF\n"}),
        [
            "containers[0].commands.script has an unescaped $ or `: flux-operator expanded it before, here it is "
            "stored as given",
            "containers[0].commands.script has a line EOF: flux-operator's ended there",
        ],
    ),
    "a script is bash's": (
        app(commands={"script": "#!/bin/sh -e\nx\n"}),
        app(commands={"script": "#!/bin/bash\nx\n"}),
        [
            "containers[0].commands.script begins with #!/bin/bash now: flux-operator ran it so, not with #!/bin/sh -e",
        ],
    ),
    "a script of another language": (
        app(commands={"script": "#!/usr/bin/env python3\nx\n"}),
        app(commands={"script": "#!/usr/bin/env python3\nx\n"}),
        [
            "containers[0].commands.script begins with #!/usr/bin/env python3, which runs it here: flux-operator ran "
            "it with bash",
        ],
    ),
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
    "the Service of older operators": (
        app(command="curl a-services.flux-service"),
        app(command="curl a-services.flux-service") | {"network": {"headlessName": "flux-service"}},
        ["network.headlessName is flux-service now, the name until 2025 that containers[0].command has"],
    ),
    "Kubernetes expanded the environment": (
        app(environment={"A": "$$(B) $$", "C": "$(B)"}),
        app(environment={"A": "$(B) $", "C": "$(B)"}),
        ["containers[0].environment.C has $(…): Kubernetes expanded it, here it is as it stands"],
    ),
    "flags are not expanded": (
        {"flux": {"optionFlags": "--env=A=$B", "environment": {"A": "`b`"}}},
        {"flux": {"optionFlags": "--env=A=$B", "environment": {"A": "`b`"}}},
        [
            "flux.optionFlags has a $ or `: flux-operator's shell expanded it, here it is taken as it stands",
            "flux.environment.A has a $ or `: flux-operator's shell expanded it, here it is taken as it stands",
        ],
    ),
    "an idle cluster has all cores of its nodes": (
        app(resources={"limits": {"cpu": "1"}}) | {"interactive": True},
        app(resources={"limits": {"cpu": "1"}}) | {"interactive": True},
        [
            "containers[0].resources give a node 1 core here: flux-operator counted all of the node's; set "
            "containers[0].cores"
        ],
    ),
    "so have a launcher": (
        app(command="x", launcher=True, resources={"requests": {"cpu": 2}}),
        app(command="x", launcher=True, resources={"requests": {"cpu": 2}}),
        [
            "containers[0].resources give a node 2 cores here: flux-operator counted all of the node's; set "
            "containers[0].cores"
        ],
    ),
    "one job that fits needs no more": (
        app(command="x", resources={"limits": {"cpu": "2"}}) | {"tasks": 4, "size": 2},
        app(command="x", resources={"limits": {"cpu": "2"}}) | {"tasks": 4, "size": 2},
        [],
    ),
    "debug is quiet too": (
        app(command="x") | {"logging": {"debug": True}, "flux": {"optionFlags": "-c 2"}},
        {"logging": {"debug": True, "strict": False}, "flux": {"optionFlags": "-c 2 --quiet"}},
        [],
    ),
    "debug of a batch": (
        app(command="x", batch=True, batchRaw=True) | {"logging": {"debug": True}},
        {"logging": {"debug": True, "strict": False}, "flux": {"connectTimeout": "", "optionFlags": "-vvv"}},
        [],
    ),
    "added capabilities": (
        app(securityContext={"addCapabilities": ["B", "C"], "capabilities": {"add": ["A"], "drop": ["ALL"]}}),
        app(securityContext={"capabilities": {"add": ["A", "B", "C"], "drop": ["ALL"]}}),
        [
            "containers[0].securityContext.addCapabilities are capabilities.add here: v1alpha2 has no such field, so "
            "flux-operator's pods went without"
        ],
    ),
    "labels of services": (
        {"pod": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "services": [{"name": "s", "image": "i"}]},
        {},
        [
            "pod.labels are on the brokers' pods only here: flux-operator had them on the services' too",
            "pod.annotations are on the brokers' pods only here: flux-operator had them on the services' too",
        ],
    ),
    "a snippet that exits": (
        app(command="x", commands={"pre": "if a; then\n  exit 0\nfi\n", "brokerPre": "x || exit", "post": "exit 0"}),
        {},
        [
            "containers[0].commands.pre has an exit, which is an error before the work here: end the snippet with "
            "return",
            "containers[0].commands.brokerPre has an exit, which is an error before the work here: end the snippet "
            "with return",
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
            f"containers[0].commands.{key} may change the view, which can't be written to here: install into the "
            "image, or a folder"
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
    "more tasks than cores": (
        app(resources={"limits": {"cpu": "2"}}) | {"tasks": 8, "size": 2},
        app(resources={"limits": {"cpu": "2"}}) | {"tasks": 8, "size": 2},
        [
            "containers[0].resources give a node 2 cores here, too few for 8 tasks on 2: flux-operator counted all of "
            "the node's; set containers[0].cores",
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
        ["pod.securityContext holds in full here: flux-operator ignored runAsUser"],
    ),
    "node affinity": (
        {"pod": {"nodeAffinity": {"a": ["b"]}}, "network": {"disableAffinity": True}},
        {"pod": {"nodeAffinity": {"a": ["b"]}}, "network": {"disableAffinity": True}},
        ["pod.nodeAffinity holds here: flux-operator ignored it beside network.disableAffinity"],
    ),
    "what is done here and was not": (
        {
            "cleanup": True,
            "archive": {"path": "/a.tgz"},
            "flux": {"mungeSecret": "m", "wrap": "strace", "arch": "arm", "container": {"pythonPath": "/p"}},
        },
        {},
        [
            "flux.arch is arm: the view image is now the one for arm; flux-operator left it as it was",
            "cleanup removes the Job with its pods: the release stays until helm uninstall",
            "archive.path is also written here, when the cluster ends: flux-operator only restored from it",
            "flux.mungeSecret is used here, by the munged that the image must have: flux-operator ignored it",
            "flux.wrap holds on the workers too: flux-operator wrapped the lead's broker only",
            "flux.container.pythonPath is for Flux's own commands: the jobs have their image's PYTHONPATH",
        ],
    ),
    "the policy that is refused": (
        {"flux": {"scheduler": {"queuePolicy": "fcfs"}}},
        {"flux": {"scheduler": {}}},
        [
            "flux.scheduler.queuePolicy is dropped: Fluxion's fcfs fails a job whose nodes are not up yet; "
            "unset, it is easy"
        ],
    ),
    "a policy without Fluxion": (
        {"flux": {"scheduler": {"simple": True, "queuePolicy": "easy"}}},
        {"flux": {"scheduler": {"simple": True}}},
        ["flux.scheduler.queuePolicy is dropped: it is Fluxion's, and simple is set"],
    ),
    "a policy beside a broker.toml": (
        {"flux": {"scheduler": {"queuePolicy": "easy"}, "brokerConfig": "a = '\\\\$B'\n"}},
        {"flux": {"scheduler": {}, "brokerConfig": "a = '\\$B'\n"}},
        [
            "flux.scheduler.queuePolicy is dropped: flux.brokerConfig is used as given",
            "flux.brokerConfig has an unescaped $ or `: flux-operator expanded it before, here it is stored as given",
        ],
    ),
    "empty texts are unset": (
        {"flux": {"submitCommand": "", "container": {"name": "", "mountPath": "", "image": ""}}},
        {"flux": {"container": {}}},
        [],
    ),
    "other names": (
        app(commands={"preWorker": "a", "preBroker": "b"}),
        app(commands={"workerPre": "a", "brokerPre": "b"}),
        [
            "containers[0].commands.preWorker is called workerPre here",
            "containers[0].commands.preBroker is called brokerPre here",
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
    "services run their image's entrypoint": (
        {"services": [{"name": "s", "image": "i", "command": "x", "commands": {"init": "y"}, "runFlux": True}]},
        {"services": [{"name": "s", "image": "i", "commands": {}}]},
        [
            "services[0].command is dropped: flux-operator ran the image's entrypoint in services",
            "services[0].commands.init is dropped: flux-operator did not run it in services",
            "services[0].runFlux is dropped: it is for the containers of the brokers' pods",
        ],
    ),
    "a script that no sidecar ran": (
        pair(command="x", commands={"script": "y"}),
        pair(command="x", commands={}),
        ["containers[1].commands.script is dropped: flux-operator wrote it to a file and did not run it"],
    ),
    "an emptyDir is at /dev/shm": (
        app(volumes={"v": {"emptyDir": True, "path": "/v", "readOnly": True, "emptyDirMedium": "Memory"}}),
        app(volumes={"v": {"emptyDir": True}}),
        [
            "containers[0].volumes.v.path is dropped: flux-operator mounts an emptyDir at /dev/shm",
            "containers[0].volumes.v.readOnly is dropped: flux-operator mounts an emptyDir to be written to",
            "containers[0].volumes.v.emptyDirMedium is dropped: flux-operator knows memory only, in lower case",
        ],
    ),
    "the first source counts": (
        app(volumes={"v": {"path": "/v", "claimName": "c", "secretName": "s", "items": {"a": "b"}}}),
        app(volumes={"v": {"path": "/v", "secretName": "s"}}),
        [
            "containers[0].volumes.v.claimName is dropped: flux-operator used secretName",
            "containers[0].volumes.v.items is dropped: flux-operator used secretName",
        ],
    ),
    "a secret at /dev/shm": (
        app(volumes={"v": {"path": "/v", "secretName": "s", "emptyDir": True}}),
        app(volumes={"v": {"path": "/dev/shm", "secretName": "s"}}),
        ["containers[0].volumes.v.emptyDir is dropped: flux-operator used secretName"],
    ),
    "volumes as v1alpha1 had them": (
        app(volumes={"v": {"path": "/v"}}, existingVolumes={"w": {"path": "/w", "claimName": "c"}})
        | {"volumes": {"v": {"path": "/host", "storageClass": "hostpath"}, "unused": {"path": "/u"}}},
        app(volumes={"v": {"path": "/v", "hostPath": "/host"}, "w": {"path": "/w", "claimName": "c"}})
        | {"volumes": None},
        [
            "containers[0].volumes.v is the host's folder itself: v1alpha1 made a claim and a volume",
            "containers[0].existingVolumes are volumes here",
        ],
    ),
    "no longer here": (
        app(fluxUser={"uid": 1}, commands={"runFluxAsRoot": False}) | {"users": [], "fluxRestful": {"port": 1}},
        app(commands={}) | {"users": None, "fluxRestful": None},
        [
            "fluxRestful is dropped: there is no RESTful server: use flux in the pods",
            "containers[0].fluxUser is dropped: one user runs everything, the pod's: set pod.securityContext",
        ],
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_traps(trap: str) -> None:
    given_spec, changes, warnings = TRAPS[trap]
    cluster = ONE | given_spec
    values, found = converted(cluster)
    expected = {key: value for key, value in (WRITTEN | cluster | changes).items() if value is not None}
    if "logging" not in changes:
        expected["logging"] = {"strict": False}
    assert values == expected
    assert found == warnings


#: In which flux-operator looks where a volume comes from (getExistingVolumes)
ORDER = ("csiDriver", "secretName", "emptyDir", "hostPath", "configMapName", "claimName")


@pytest.mark.parametrize(("used", "other"), list(combinations(ORDER, 2)))
def test_of_two_sources_of_a_volume_the_first_counts(used: str, other: str) -> None:
    volume: dict[str, Any] = {key: "/x" if key == "hostPath" else "x" for key in (other, used)}
    volume |= {"emptyDir": True} if "emptyDir" in volume else {}
    values, warnings = converted(ONE | app(volumes={"v": {"path": "/dev/shm", **volume}}))
    assert values["containers"][0]["volumes"]["v"] == {"path": "/dev/shm", used: volume[used]}
    assert warnings == [f"containers[0].volumes.v.{other} is dropped: flux-operator used {used}"]


def test_the_order_of_the_keys_stays() -> None:
    cluster = {"tasks": 1, "size": 2, "flux": {"topology": "", "arch": ""}, "containers": [{"logs": "", "image": "i"}]}
    values, _ = converted(cluster)
    assert list(values) == ["tasks", "size", "flux", "containers", "logging"]
    assert list(values["flux"]) == ["topology", "arch"]
    assert list(values["containers"][0]) == ["logs", "image"]


def test_scalars_are_read_as_kubernetes_does() -> None:
    text = "{A: 1:30:00, B: 2024-01-01, C: =, D: '007'}"
    data = f"apiVersion: {V1ALPHA2}\nkind: MiniCluster\nmetadata: {{name: a}}\nspec:\n  containers:\n"
    (values,), _ = convert.convert(f"{data}  - image: i\n    environment: {text}\n".encode())
    written = values.text.partition("environment:\n")[2].splitlines()[:4]
    # quoted, for whoever reads YAML 1.1 too
    assert [line.strip() for line in written] == ["A: '1:30:00'", "B: '2024-01-01'", "C: '='", "D: '007'"]


def test_anchors_are_written_out() -> None:
    data = yaml.safe_dump(document(ONE)).replace("image: i", "image: i\n    environment: &e {A: b}\n    secrets: {}")
    (values,), _ = convert.convert(f"{data}  flux: {{environment: *e}}\n".encode())
    assert "*" not in values.text
    assert values.text.count("A: b") == 2


def test_a_name_too_long_for_a_release_is_an_override() -> None:
    name = "n" * 60
    (values,), _ = convert.convert(yaml.safe_dump(document(ONE, name=name)).encode())
    command, note = values.text.splitlines()[:2]
    assert command.startswith(f"# helm install {'n' * 53} ")
    assert f"-f {name}-values.yaml" in command
    assert yaml.safe_load(values.text)["nameOverride"] == name
    assert "nameOverride" in values.text.split("\n", 4)[3] + note


# ---- properties

WORD = st.from_regex(r"\A[a-z][a-z0-9]{0,8}\Z")
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=["Cc"]), max_size=30)
LINES = st.lists(TEXT, min_size=1, max_size=3).map("\n".join)
WORDS = st.dictionaries(WORD, WORD, max_size=2)
FLAG = st.booleans()
SNIPPETS = ("init", "pre", "post", "brokerPre", "workerPre")
SOURCE: dict[str, st.SearchStrategy[Any]] = {
    "claimName": WORD,
    "hostPath": st.just("/h"),
    "secretName": WORD,
    "configMapName": WORD,
    "csiDriver": WORD,
    "emptyDir": st.just(True),
}
VOLUME = st.sampled_from(sorted(SOURCE)).flatmap(
    lambda key: st.fixed_dictionaries({"path": st.just("/m"), key: SOURCE[key]}, optional={"readOnly": FLAG})
)
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "imagePullPolicy": st.sampled_from(["", "Always", "Never"]),
    "imagePullSecret": WORD,
    "workingDir": st.just("/w"),
    "environment": st.dictionaries(WORD, LINES, max_size=2),
    "secrets": st.dictionaries(WORD, st.fixed_dictionaries({"name": WORD, "key": WORD}), max_size=1),
    "resources": st.fixed_dictionaries({}, optional={"limits": st.just({"cpu": "2", "memory": "1Gi"})}),
    "securityContext": st.just({"privileged": True}),
    "ports": st.lists(st.integers(1, 65535), unique=True, max_size=2),
    "lifeCycle": st.fixed_dictionaries({}, optional={"postStartExec": LINES, "preStopExec": LINES}),
    "pullAlways": FLAG,
}
RUNNER = st.fixed_dictionaries(
    {"image": WORD},
    optional=COMMON
    | {
        "command": LINES,
        "name": WORD,
        "logs": st.just("/logs"),
        "launcher": FLAG,
        "batchRaw": FLAG,
        "runFlux": st.just(True),
        "commands": st.fixed_dictionaries({}, optional=dict.fromkeys(SNIPPETS, LINES)),
        # two volumes can't be at one path, and each emptyDir is at /dev/shm
        "volumes": st.dictionaries(WORD, VOLUME, max_size=2)
        .map(lambda volumes: {name: {**one, "path": f"/m/{name}"} for name, one in volumes.items()})
        .filter(lambda volumes: [*map(set, volumes.values())].count({"path", "emptyDir"}) < 2),
    },
)
FLUX = st.fixed_dictionaries(
    {},
    optional={
        "arch": st.sampled_from(["", "arm"]),
        "logLevel": st.integers(0, 7),
        "connectTimeout": st.sampled_from(["", "0s", "5s"]),
        "topology": st.sampled_from(["", "kary:2", "binomial"]),
        "wrap": st.just("strace,-f"),
        "environment": WORDS,
        "mungeSecret": WORD,
        "scheduler": st.fixed_dictionaries({}, optional={"simple": FLAG, "queuePolicy": st.just("easy")}),
        "container": st.fixed_dictionaries({}, optional={"disable": FLAG, "pullAlways": FLAG, "name": st.just("")}),
        "bursting": st.just({"clusters": [{"size": 2}]}),
        **dict.fromkeys(("disableSocket", "noWaitSocket", "completeWorkers", "minimalService"), FLAG),
    },
).filter(lambda flux: "bursting" not in flux or not flux.get("topology"))
SIDECAR = st.fixed_dictionaries(
    {"image": WORD},
    optional=COMMON
    | {
        "command": LINES,
        "noWrapEntrypoint": FLAG,
        "batch": FLAG,
        "commands": st.fixed_dictionaries({}, optional=dict.fromkeys((*SNIPPETS, "servicePre", "script"), LINES)),
        "volumes": st.dictionaries(WORD, VOLUME, max_size=1),
    },
)
POD = st.fixed_dictionaries(
    {},
    optional={
        "labels": WORDS,
        "annotations": st.dictionaries(WORD, TEXT, max_size=2),
        "restartPolicy": st.sampled_from(["OnFailure", "Never", "Always"]),
        "securityContext": st.just({"fsGroup": 1, "runAsUser": 2}),
        "nodeAffinity": st.dictionaries(WORD, st.lists(WORD, min_size=1, max_size=2), max_size=1),
        "tolerations": st.just([{"key": "a"}]),
        "hostPID": FLAG,
    },
)


@st.composite
def clusters(draw: Callable[[st.SearchStrategy[Any]], Any]) -> dict[str, Any]:
    size = draw(st.integers(1, 5))
    cluster: dict[str, Any] = {"size": size, "containers": [draw(RUNNER)]}
    if draw(FLAG):
        cluster["containers"][0]["runFlux"] = True
        cluster["containers"].append(draw(SIDECAR) | {"name": "side-car"})
    optional = {
        "maxSize": st.sampled_from([0, size, size + 2]),
        "minSize": st.integers(0, size),
        "tasks": st.integers(0, 9),
        "interactive": FLAG,
        "backoffLimit": st.integers(0, 3),
        "cleanup": FLAG,
        "jobLabels": WORDS,
        "flux": FLUX,
        "pod": POD,
        "logging": st.fixed_dictionaries({}, optional=dict.fromkeys(("quiet", "strict", "timed"), FLAG)),
        "network": st.fixed_dictionaries({}, optional={"headlessName": WORD, "disableAffinity": FLAG}),
        "services": st.lists(SIDECAR.map(lambda c: c | {"name": "web", "commands": {}}), max_size=1),
    }
    return cluster | draw(st.fixed_dictionaries({}, optional=optional))


@settings(deadline=None, derandomize=True, database=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_what_is_valid_converts_to_values_that_load(cluster: dict[str, Any]) -> None:
    values, _ = converted(cluster)
    loaded = load({"metadata": {"name": "a"}, "spec": values})
    list(config.documents(loaded, lambda: (b"0" * 40, b"0" * 40)))
    assert loaded.size == cluster["size"]
    assert loaded.max_size == (cluster.get("maxSize") or cluster["size"])
    assert loaded.spec["logging"]["strict"] == cluster.get("logging", {}).get("strict", False)
    assert loaded.spec["backoffLimit"] == (cluster.get("backoffLimit") or 100)
    timeout = cluster["flux"].get("connectTimeout", "5s") if "flux" in cluster else ""
    assert loaded.flux["connectTimeout"] == timeout


@settings(deadline=None, derandomize=True, database=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(clusters())
def test_what_was_converted_is_not_changed_again(cluster: dict[str, Any]) -> None:
    values, _ = converted(cluster)
    command = values["containers"][0].get("command")
    again, _ = converted(values)
    if isinstance(command, list) or "batch" in values["containers"][0]:
        return
    assert again["containers"] == values["containers"] or any("$$" in str(c) for c in cluster["containers"])
    assert {**again, "containers": 0} == {**values, "containers": 0}


KEYS = (
    *("containers", "services", "flux", "pod", "commands", "command", "script", "volumes", "v", "emptyDir", "name"),
    *("bursting", "clusters", "leadBroker", "scheduler", "container", "environment", "resources", "limits", "cpu"),
    *("existingVolumes", "runFlux", "image"),
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "a", "$X"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "containers",
                    "services",
                    "flux",
                    "pod",
                    "commands",
                    "command",
                    "script",
                    "volumes",
                    "v",
                    "emptyDir",
                    "bursting",
                    "clusters",
                    "leadBroker",
                    "scheduler",
                    "container",
                    "environment",
                    "resources",
                    "limits",
                    "cpu",
                    "existingVolumes",
                    "runFlux",
                    "name",
                    "image",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(JUNK, st.sampled_from([V1ALPHA1, V1ALPHA2]))
@example({"containers": [{"volumes": {"v": 1}}], "volumes": 1}, V1ALPHA1)
def test_anything_else_is_an_error_of_one_line(junk: object, version: str) -> None:
    try:
        converted(junk, version=version)
    except MiniClusterError as error:
        assert len(str(error).splitlines()) == 1


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=60))
def test_any_bytes_are_an_error_of_one_line(data: bytes) -> None:
    with pytest.raises(MiniClusterError) as error:
        convert.convert(data)
    assert len(str(error.value).splitlines()) == 1
