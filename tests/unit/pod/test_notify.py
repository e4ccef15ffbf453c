"""What is sent to a web address, in which form, how often; and that the address is in no message."""

import json
import socket
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import notify
import pytest
from notify import Sender, Where, body, main, post

JSON, SLACK = Where("json", "mini", "lab"), Where("slack", "mini", "lab")
KEY = "key-of-mine"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINICLUSTER_HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(notify, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(notify, "LAST_PAUSES", (0.0,))
    return tmp_path


def address(home: Path, text: str) -> None:
    (home / "notify").mkdir(exist_ok=True)
    (home / "notify" / "url").write_text(text)


class Server(HTTPServer):
    """Answers with codes, the last one again and again; keeps what it was asked."""

    def __init__(self, *codes: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.codes, self.asked = list(codes), list[tuple[str, Any]]()
        Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path: str = KEY) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, json.loads(text)))
        code = self.server.codes.pop(0) if len(self.server.codes) > 1 else self.server.codes[0]
        self.send_response(code)
        if code == 302:
            self.send_header("Location", self.server.url("elsewhere"))
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def test_a_thing_has_one_form_for_programs_and_one_for_slack() -> None:
    text = "job f1 (<a&b>\n'x') has failed"
    assert json.loads(body(JSON, "jobFailed", text, 1e9, {"job": {"id": "f1"}})) == {
        "event": "jobFailed",
        "cluster": "mini",
        "namespace": "lab",
        "time": "2001-09-09T01:46:40Z",
        "text": "lab/mini: job f1 (<a&b> 'x') has failed",
        "job": {"id": "f1"},
    }
    assert json.loads(body(SLACK, "jobFailed", text, 1e9, {})) == {
        "text": "lab/mini: job f1 (&lt;a&amp;b&gt; 'x') has failed"
    }
    assert len(json.loads(body(JSON, "jobFailed", "x" * 9999, 1e9, {}))["text"]) == 500


def test_a_failure_is_tried_again_within_bounds(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Server(500, 200) as server:
        address(home, f"{server.url()}\n")
        main("ended", "7", JSON, ["clusterEnded"])
        assert [(path, told["event"], told["exitCode"]) for path, told in server.asked] == [
            (f"/{KEY}", "clusterEnded", 7)
        ] * 2
        main("ended", "7", JSON, ["jobFailed"])
        main("lost", "0", JSON, ["clusterEnded"])
        assert len(server.asked) == 2
        assert capsys.readouterr() == ("", "")
        server.codes = [404]
        main("lost", "0", JSON, ["leadLost"])
        assert len(server.asked) == 2 + 3
        server.shutdown()
    why = "the server answered 404"
    assert capsys.readouterr().err == f"minicluster: leadLost could not be told (notify.events), 3 tries: {why}\n"


def test_a_proxy_is_taken_from_the_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(200) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url(""))
        address(home, f"http://chat.example/{KEY}")
        assert post(b"{}") == ""
        assert proxy.asked == [(f"http://chat.example/{KEY}", {})]
        proxy.shutdown()


def test_no_error_has_the_address(home: Path) -> None:
    with socket.socket() as listener, Server(302) as server:
        listener.bind(("127.0.0.1", 0))
        closed = listener.getsockname()[1]
        cases = {
            f"http://127.0.0.1:{closed}/{KEY}": "Connection refused",
            f"http://127.0.0.1:{KEY}/": "InvalidURL",
            f"http://127.0.0.1:1 2/{KEY}": "InvalidURL",
            f"file:///{KEY}": "the Secret has no address that begins with http:// or https://",
            "": "the Secret has no address that begins with http:// or https://",
            # no redirection is followed
            server.url(): "the server answered 302",
        }
        for text, why in cases.items():
            address(home, text)
            assert post(b"{}") == why
        assert [path for path, _ in server.asked] == [f"/{KEY}"]
        server.shutdown()
    (home / "notify/url").unlink()
    assert post(b"{}") == "the Secret's file can't be read: FileNotFoundError"


def test_what_comes_when_many_wait_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notify, "WAITING_RECORDS", 2)
    monkeypatch.setattr(Sender, "_send", lambda _: None)
    sender = Sender(JSON)
    for _ in range(4):
        sender.tell("jobFailed", "text")
    assert capsys.readouterr().err.splitlines() == [
        f"minicluster: {count} things are left out (notify.events): 2 wait to be told" for count in (1, 2)
    ]
