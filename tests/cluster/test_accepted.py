"""Examples install, and the API server accepts any text."""

import json
from pathlib import Path

import pytest
import yaml
from support import ROOT, load_all

from tools.clients import ProcessError
from tools.releases import Release


def test_difficult_texts_reach_kubernetes_unchanged(release: Release) -> None:
    texts = [
        *(
            "a 'b' \"c\" $HOME ${X} $(MINICLUSTER_HOME) $$ `id` \\ \\n",
            "  lead\n\n trail \n\n",
            "\n a\nb",
            "---\n- x: y # z",
        ),
        *("yes", "012", "1:30", "1e3", "0x1F", "~", "é 日本 🚀", "\ta\t", "{{ .Values }}", "x" * 2000, "word " * 200),
    ]
    environment = {f"V{index}": text for index, text in enumerate(texts)}
    commands = dict(zip(("init", "pre", "brokerPre", "workerPre", "post"), texts, strict=False))
    runner = {"command": texts[0], "environment": environment, "commands": commands}
    release.install(containers=[runner], flux={"environment": environment})
    data = release.get("configmap", "mc-config")["data"]
    files = ("init.sh", "pre.sh", "broker-pre.sh", "worker-pre.sh", "post.sh")
    assert {key: data[file] for key, file in zip(commands, files, strict=True)} == commands
    assert data["command"] == texts[0]
    env = release.get("job")["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {v["name"]: v.get("value", "").replace("$$", "$") for v in env if v["name"] in environment} == environment


#: Examples whose pods need nothing special of a node; test_api.py installs some more, and validates all.
PLAIN = ("interactive", "restricted", "batch", "volume-emptydir-shm")


@pytest.mark.parametrize(
    "example", [ROOT / f"values-examples/{name}.yaml" for name in PLAIN], ids=lambda path: path.stem
)
def test_an_example_installs_and_its_pods_start(release4: Release, example: Path) -> None:
    release4.install(**yaml.safe_load(example.read_text()))
    release4.running(release4.values["size"])


def test_kubernetes_accepts_the_largest_size_and_no_larger_one(release4: Release) -> None:
    manifests = load_all(release4.helm.template(values={"size": 100_000}))
    job = next(document for document in manifests if document["kind"] == "Job")
    job["metadata"]["namespace"], job["apiVersion"] = release4.namespace, "batch/v1"
    create = ("create", "--dry-run=server", "--filename=-")
    release4.kubectl(*create, stdin=json.dumps(job))
    job["spec"]["parallelism"] = job["spec"]["completions"] = 100_001
    with pytest.raises(ProcessError, match="must be less than or equal to 100000"):
        release4.kubectl(*create, stdin=json.dumps(job))
