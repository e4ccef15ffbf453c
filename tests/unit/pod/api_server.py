"""An API server for the programs of the chart's own pods: what it has is in an object with `answer`."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: Seconds in which a server sees that it is to end
POLL_SECONDS = 0.02


class ApiHandler(BaseHTTPRequestHandler):
    """Answers requests that have the account's token, with a code and an object."""

    api: Any

    def answer(self) -> None:
        self.check_token()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        code, found = self.api.answer(self.command, self.path, json.loads(body) if body else None)
        text = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_DELETE = do_POST = do_PATCH = answer  # noqa: N815

    def check_token(self) -> None:
        assert self.headers["Authorization"] == "Bearer a-token"

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(handler: type[ApiHandler], api: Any, account: Path) -> Iterator[str]:
    """Serve what an object answers; give the address, and write the account's files to a folder."""
    (account / "token").write_text("a-token\n")
    (account / "namespace").write_text("ns")
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"api": api})) as server:
        threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
