"""What the commands say while the API server is away, and that they go on when it is back."""

import json
import re
import socket
import socketserver
import subprocess
import threading
from contextlib import suppress

import pytest
from failures import FAILURES, NAME, matches
from simulated import end
from support import Process

from tools.clients import run
from tools.releases import Release

pytestmark = pytest.mark.any_helm


class Door(socketserver.ThreadingTCPServer):
    """The way to the API server, which can be shut: then nothing answers, and connections end."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self, release: Release) -> None:
        super().__init__(("127.0.0.1", 0), Passage)
        config = json.loads(release.cluster.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        _, _, port = cluster["server"].rpartition(":")
        self.target, self.sockets = ("127.0.0.1", int(port)), set[socket.socket]()
        self.is_shut = False
        cluster["server"] = f"https://127.0.0.1:{self.server_address[1]}"
        self.kubeconfig = release.helm.home / "door.kubeconfig"
        self.kubeconfig.write_text(json.dumps(config))
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def shut(self) -> None:
        self.is_shut = True
        for one in list(self.sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Passage(socketserver.BaseRequestHandler):
    """A connection through the door."""

    server: Door

    def handle(self) -> None:
        if self.server.is_shut:
            return
        with socket.create_connection(self.server.target) as there:
            pair = {self.request, there}
            self.server.sockets |= pair
            back = threading.Thread(target=self.copy, args=(there, self.request), daemon=True)
            back.start()
            self.copy(self.request, there)
            back.join()
            self.server.sockets -= pair

    @staticmethod
    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


def test_status_without_an_api_server_says_that_jobs_go_on_and_what_to_check(demo: Release) -> None:
    config = json.loads(demo.cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    away = demo.helm.home / "away.kubeconfig"
    away.write_text(json.dumps(config))
    done = run("minicluster", "status", NAME, env={**demo.helm.environment, "KUBECONFIG": str(away)})
    assert matches(FAILURES["API server away"].status, done.err.removeprefix("minicluster: ").rstrip("\n"))


def test_a_wait_goes_on_when_the_api_server_is_back_and_learns_the_end_from_meanwhile(demo: Release) -> None:
    demo.install(size=1)
    demo.running(1)
    with Door(demo) as door:
        environment = {**demo.helm.environment, "KUBECONFIG": str(door.kubeconfig)}
        words = ("minicluster", "wait", NAME, "-n", demo.namespace, "--for", "end")
        with Process(words, env=environment, stderr=subprocess.PIPE, text=True) as waits:
            said = iter(waits.stderr.readline, "")
            assert next(said) == "minicluster: demo: Running\n"
            door.shut()
            assert re.search(r": trying again for 900 s$", next(said))
            end(demo, 0, 0)
            demo.condition("Complete")
            assert waits.poll() is None
            door.is_shut = False
            assert waits.wait(60) == 0
            assert list(said) == ["minicluster: demo has ended (exit code 0): Complete\n"]
        door.shutdown()
