"""What is told to a web address, on a real Kubernetes: the address is in a Secret alone."""

import json

import pytest
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import FluxRelease
from tools.testbed import NAME

pytestmark = [IN_PODS, pytest.mark.parametrize("scheduler", ["Fluxion"], indirect=True)]

PORT = 9090
#: Prints what comes, on a line each
SERVER = f"""
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print(self.rfile.read(int(self.headers['Content-Length'])).decode(), flush=True)
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(('', {PORT}), Handler).serve_forever()
"""
KEY = "key-of-mine"
EVENTS = ["jobFailed", "queueEmpty", "leadLost"]


def came(cluster: FluxRelease) -> list[dict[str, object]]:
    return [json.loads(line) for line in cluster.exec(2, "cat", "/tmp/came").splitlines() if line.startswith("{")]


def test_a_failed_job_an_empty_queue_and_a_lost_lead_are_told(release: Install) -> None:
    values = {"size": 3, "notify": {"secret": {"name": "chat", "key": "hook"}, "events": EVENTS}}
    cluster = release(values)
    service = cluster.pods(2)[0]["spec"]["subdomain"]
    address = f"http://{NAME}-2.{service}:{PORT}/{KEY}"
    cluster.kubectl("create", "secret", "generic", "chat", f"--from-literal=hook={address}")
    cluster.wait_for("0-2")
    cluster.exec(2, "sh", "-c", 'nohup python3 -c "$0" >/tmp/came 2>/tmp/said &', SERVER)
    name = cluster.flux(0, "submit", "--job-name=<a&b>", "sh", "-c", "exit 7").strip().replace("\u0192", "f")
    until(lambda: [each["event"] for each in came(cluster)] == ["jobFailed", "queueEmpty"])
    failed = came(cluster)[0]
    assert failed["text"] == f"{cluster.namespace}/{NAME}: job {name} (<a&b>) has failed: exit code 7"
    cluster.kubectl("delete", "pod", cluster.pod(0), "--force", "--grace-period=0")
    until(lambda: [each["event"] for each in came(cluster)][2:] == ["leadLost"])
    # nowhere else
    everything = cluster.kubectl("get", "configmap,job,pod,event", "-o", "json") + cluster.log(1)
    assert KEY not in everything
    words = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' ' '"
    assert KEY not in cluster.exec(1, "sh", "-c", words)
