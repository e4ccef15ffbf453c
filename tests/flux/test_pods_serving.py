"""A server over several nodes on a real Kubernetes, by its example, with a stand-in for vLLM."""

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from pod_jobs import QUIET
from real_cluster import IN_PODS, Install, example
from support import ROOT

from tools.clients import until
from tools.releases import FluxRelease
from tools.testbed import NAME, images

pytestmark = [IN_PODS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]
STAND_IN = (Path(__file__).parent / "vllm_stand_in.py").read_text()
#: A program `vllm` that the view's own Python runs
PROGRAM = f"""\
cat >/tmp/vllm.py <<'END_OF_PROGRAM'
{STAND_IN}
END_OF_PROGRAM
mkdir -p /tmp/bin
printf '#!/bin/sh\\nexec flux python /tmp/vllm.py "$@"\\n' >/tmp/bin/vllm
chmod +x /tmp/bin/vllm
export PATH=/tmp/bin:$PATH
"""
ASK = "import urllib.request as r; print(r.urlopen('http://vllm-api:8000/v1/models', timeout=5).read().decode())"
SECONDS = 180.0


def service() -> dict[str, Any]:
    """Return the Service of the example's header, for the tests' release."""
    header = (ROOT / "values-examples/vllm.yaml").read_text()
    found = re.search(r"<<END\n(.*?)^#   END$", header, re.DOTALL | re.MULTILINE)
    assert found
    made: dict[str, Any] = yaml.safe_load(textwrap.dedent(found[1].replace("#", " ")))
    made["spec"]["selector"]["batch.kubernetes.io/job-name"] = NAME
    return made


def answer(cluster: FluxRelease) -> dict[str, Any]:
    """Return what the server says to a pod that asks the Service; empty while it does not serve."""
    text = cluster.flux(1, "python", "-c", ASK)
    return json.loads(text) if text.startswith("{") else {}


def test_a_server_over_two_nodes_is_behind_a_service_and_outlives_the_loss_of_a_worker(release: Install) -> None:
    values, runner = example("vllm")
    # no GPUs here; the view is an image that each test cluster has
    del runner["resources"]
    runner["volumes"]["model"]["image"] = images()["flux"]["container"]["image"]
    runner["command"] = runner["command"].replace("vllm-0.vllm", f"{NAME}-0.{NAME}")
    cluster = release({**values, **QUIET}, {"cores": 1, "commands": {"pre": PROGRAM}, **runner}, mode="image")
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(service()))
    first = until(lambda: answer(cluster), SECONDS, "the server")
    started = first.pop("started")
    names = [f"{NAME}-0", f"{NAME}-1"]
    expected = {"data": [{"id": "/model", "files": first["data"][0]["files"]}], "nodes": names, "size": 16}
    assert first == expected
    assert "opt" in first["data"][0]["files"]
    cluster.kubectl("delete", "pod", cluster.pod(1), "--grace-period=0", "--force")
    again = until(lambda: answer(cluster).get("started", started) != started and answer(cluster), SECONDS, "it again")
    assert {key: value for key, value in again.items() if key != "started"} == expected
    assert cluster.conditions() == {}
