"""What the SDK says while it waits, and of certificates that the kubeconfig doesn't check."""

import http.server
import logging
import ssl
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import status_samples
import yaml
from fake_kube import FakeKube, Then, forbidden
from minicluster.kube.client import KubeClient
from minicluster.sdk import lead_wait
from minicluster.sdk.lead_wait import wait_for_lead
from status_samples import RUNNING, STARTS, job, pod
from urllib3.exceptions import InsecureRequestWarning

CONTAINER = {"name": "mini", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}
CREATING = status_samples.waiting("ImagePullBackOff", "no such image")


def kube(*states: Any, run: Any = None) -> FakeKube:
    """Return a namespace with the MiniCluster mini, whose lead is in these states, one after the other."""
    pods = [[{**pod(0, one, uid="u"), "spec": {"containers": [CONTAINER]}}] if one else [] for one in states]
    return FakeKube(has={"job": job(2), "pods": Then(pods)}, commands=[lambda _: run])


@pytest.mark.parametrize(("quiet", "count"), [(1e-9, 1), (3600.0, 0)], ids=["long", "short"])
def test_a_long_wait_logs_each_state_once(
    quiet: float, count: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lead_wait, "QUIET_SECONDS", quiet)
    found = kube(None, None, CREATING, CREATING, None, CREATING, RUNNING)
    with caplog.at_level(logging.WARNING):
        assert wait_for_lead(found, "mini", None).is_ready
    assert ("sights", "mini", f"{quiet:g}") in found.asked
    lines = [record.getMessage() for record in caplog.records]
    assert {record.name for record in caplog.records} <= {"minicluster.sdk"}
    assert len([line for line in lines if "ImagePullBackOff" in line]) == count
    assert len(lines) == len(set(lines)) == 2 * count
    assert all(line.startswith("waiting for mini: ") for line in lines)


def test_a_user_who_may_not_ask_the_lead_waits_all_the_same() -> None:
    assert wait_for_lead(kube(STARTS, STARTS, RUNNING, run=forbidden("exec")), "mini", None).is_ready


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve HTTPS with a certificate that nobody checks, and name it in the kubeconfig."""
    words = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout key -out cert"
    subprocess.run(["openssl", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    found.socket = context.wrap_socket(found.socket, server_side=True)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    kubeconfig = {
        "clusters": [
            {
                "name": "c",
                "cluster": {
                    "server": f"https://127.0.0.1:{found.server_address[1]}",
                    "insecure-skip-tls-verify": True,
                },
            }
        ],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    yield
    found.shutdown()
    found.server_close()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(("action", "count"), [("always", 1), ("ignore", 0)])
def test_an_unchecked_certificate_is_told_once(action: Any, count: int) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.resetwarnings()
        warnings.simplefilter("always", ResourceWarning)
        warnings.simplefilter(action, InsecureRequestWarning, append=True)
        for _ in range(2):
            client = KubeClient.connect("", "")
            assert [client.get("job", "a") for _ in range(3)] == [{}] * 3
            client.close()
    assert [one.category for one in found].count(InsecureRequestWarning) == count


def test_the_import_of_the_sdk_prints_nothing() -> None:
    code = "import minicluster.sdk"
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True)
    assert "minicluster" not in done.stderr
    assert done.stdout == ""
