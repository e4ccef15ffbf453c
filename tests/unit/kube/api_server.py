"""An API server in the test's process, with the world of `live_kubectl.Kubectl`: both tell the same of it.

Each answer is a file of that folder. Commands run on this machine, behind the WebSocket of `exec`.
"""

import base64
import hashlib
import http.server
import json
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

STDIN, STDOUT, STDERR, ERROR = range(4)
#: HTTP's status by the reason in an error of kubectl
STATUS = {"(Forbidden)": 403, "is forbidden": 403, "(Conflict)": 409}


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers from the files of a folder."""

    folder: Path
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        parts = path.strip("/").split("/")
        if path == "/apis/":
            version = {"groupVersion": "kueue.x-k8s.io/v1beta1", "version": "v1beta1"}
            group = {"name": "kueue.x-k8s.io", "versions": [version], "preferredVersion": version}
            self._say(200, {"kind": "APIGroupList", "groups": [group]})
        elif parts[-1] == "exec":
            self._exec(query["command"], query.get("stdin") == ["True"] or query.get("stdin") == ["true"])
        elif parts[-1] == "log":
            self._text("logs")
        elif query.get("watch"):
            self._watch(float(query["timeoutSeconds"][0]))
        else:
            of_namespace = parts[parts.index("namespaces") + 2 :]
            if not of_namespace:
                found = {} if (self.folder / "no-namespace").exists() else {"kind": "Namespace"}
                self._say(200 if found else 404, found or {"message": "there is no such namespace"})
                return
            plural, *name = of_namespace
            self._object(plural.removesuffix("s") if name else plural, is_list=not name)

    def do_PATCH(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._object("patch", is_list=False)

    def _object(self, name: str, *, is_list: bool) -> None:
        error = self._error(name)
        path = self.folder / name
        text = path.read_text() if path.exists() else ""
        if error:
            self._say(next((code for said, code in STATUS.items() if said in error), 500), {"message": error})
        elif text:
            self._say(200, json.loads(text))
        elif is_list:
            self._say(200, {"items": []})
        else:
            self._say(404, {"message": f"{name} not found"})

    def _error(self, name: str) -> str:
        path = self.folder / f"{name}.error"
        return path.read_text() if path.exists() else ""

    def _text(self, name: str) -> None:
        error = self._error(name)
        if error:
            self._say(403 if "forbidden" in error else 404, {"message": error})
            return
        data = (self.folder / name).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _watch(self, seconds: float) -> None:
        self.close_connection = True
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            for _ in range(int(10 * seconds)):
                self.wfile.write(json.dumps({"type": "MODIFIED", "object": {"metadata": {}}}).encode() + b"\n")
                self.wfile.flush()
                time.sleep(0.1)

    def _say(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(data)

    # exec

    def _exec(self, words: list[str], has_input: bool) -> None:
        error = self._error("exec")
        if error:
            self._say(403 if "forbidden" in error else 500, {"message": error})
            return
        self.close_connection = True
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
        self.end_headers()
        pipe, lock = subprocess.PIPE, threading.Lock()
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as process:
            readers = [
                threading.Thread(target=self._copy, args=(source, channel, lock))
                for source, channel in ((process.stdout, STDOUT), (process.stderr, STDERR))
            ]
            for reader in readers:
                reader.start()
            threading.Thread(target=self._input, args=(process,), daemon=True).start()
            if not has_input and process.stdin:
                process.stdin.close()
            code = process.wait()
            for reader in readers:
                reader.join()
        cause = {"reason": "ExitCode", "message": str(code)}
        status = {"status": "Failure", "details": {"causes": [cause]}} if code else {"status": "Success"}
        self._frame(ERROR, json.dumps(status).encode(), lock)
        with suppress(OSError):
            self.wfile.write(b"\x88\x00")

    def _copy(self, source: Any, channel: int, lock: threading.Lock) -> None:
        while data := source.read(1 << 14):
            self._frame(channel, data, lock)

    def _frame(self, channel: int, data: bytes, lock: threading.Lock) -> None:
        body = bytes([channel]) + data
        length = bytes([len(body)]) if len(body) < 126 else b"\x7e" + struct.pack(">H", len(body))
        with lock, suppress(OSError):
            self.wfile.write(b"\x82" + length + body)
            self.wfile.flush()

    def _input(self, process: subprocess.Popen[bytes]) -> None:
        """Give what the client sends to the command; a client that leaves ends it."""
        with suppress(OSError, ValueError, IndexError):
            while True:
                first, second = self.rfile.read(2)
                size = second & 0x7F
                if size == 126:
                    size = struct.unpack(">H", self.rfile.read(2))[0]
                elif size == 127:
                    size = struct.unpack(">Q", self.rfile.read(8))[0]
                mask, masked = self.rfile.read(4), self.rfile.read(size)
                data = bytes(byte ^ mask[place % 4] for place, byte in enumerate(masked))
                if first & 0xF == 8:
                    break
                if data and data[0] == STDIN and process.stdin:
                    process.stdin.write(data[1:])
        process.kill()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def api_server(folder: Path) -> Iterator[Path]:
    """Serve a folder, and yield a kubeconfig whose namespace is lab."""
    made = type("Of", (Handler,), {"folder": folder})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), made)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    kubeconfig = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "lab"}}],
        "current-context": "c",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()
