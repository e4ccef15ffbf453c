"""How often a broker asks DNS for its parent: while the name doesn't exist, and while nobody listens at its address.

    python -m benchmarks.names FILE.json [--seconds 20]

One broker of rank 1 runs in a network namespace of its own, whose DNS is a server in this program. Needs flux in PATH,
unshare and ip, and the right to make namespaces.
"""

import argparse
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import tomli_w

from benchmarks.results import Row, save
from tools.clients import output, run_program, until

PARENT = "bench-0"
#: Answers to a question of type A, and to any other.
NO_SUCH_NAME_FLAGS, NO_ERROR_FLAGS = 0x8183, 0x8180


def answer(question: bytes, known: bool) -> bytes:
    """Return the answer to a DNS message: 127.0.0.1 for an A record of a known name, none for other types."""
    end = question.index(b"\0", 12) + 5  # the name, its type and class
    (kind,) = struct.unpack(">H", question[end - 4 : end - 2])
    found = known and kind == 1
    head = struct.pack(">HHHHH", NO_ERROR_FLAGS if known else NO_SUCH_NAME_FLAGS, 1, int(found), 0, 0)
    record = struct.pack(">HHHIH4B", 0xC00C, 1, 1, 5, 4, 127, 0, 0, 1) if found else b""
    return question[:2] + head + question[12:end] + record


class Server(threading.Thread):
    """A DNS server that counts."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.known, self.asked = False, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))

    def run(self) -> None:
        """Answer."""
        while True:
            question, sender = self.socket.recvfrom(4096)
            self.asked += 1
            self.socket.sendto(answer(question, self.known), sender)


def broker(folder: Path) -> subprocess.Popen[bytes]:
    """Start a broker whose parent is another host."""
    (folder / "R").write_text(output("flux", "R", "encode", "--hosts=bench-[0-1]", "--cores=0"))
    output("flux", "keygen", folder / "curve.cert")
    bootstrap = {
        "curve_cert": str(folder / "curve.cert"),
        "default_port": 8050,
        "default_bind": "tcp://127.0.0.2:%p",
        "default_connect": "tcp://%h.flux.default.svc.cluster.local.:%p",
        "hosts": [{"host": "bench-[0-1]"}],
    }
    tables = {"bootstrap": bootstrap, "resource": {"path": str(folder / "R"), "noverify": True}}
    (folder / "broker.toml").write_text(tomli_w.dumps(tables))
    words = ["flux", "broker", f"-c{folder}/broker.toml", "-Shostname=bench-1", f"-Srundir={folder}"]
    return subprocess.Popen([*words, "-Stbon.connect_timeout=5s"], stdin=subprocess.DEVNULL)


def inside(file: Path, seconds: float, where: str) -> None:
    """Measure, in the namespace."""
    output("ip", "link", "set", "lo", "up")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in (("/etc/resolv.conf", "nameserver 127.0.0.1\n"), ("/etc/nsswitch.conf", "hosts: dns\n")):
            (folder / Path(path).name).write_text(text)
            output("mount", "--bind", folder / Path(path).name, path)
        server = Server()
        server.start()
        process = broker(folder)
        rows: list[Row] = []
        try:
            until(lambda: server.asked, 120, "the first question")
            for state in ("the name is not there", "the name is there, nobody listens"):
                before = server.asked
                time.sleep(seconds)
                rows.append({"state": state, "queries_a_second": (server.asked - before) / seconds})
                server.known = True
        finally:
            process.kill()
            process.wait()
    save(file, where, rows)


def main() -> None:
    """Measure in namespaces of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--where", default="")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.file, options.seconds, options.where)
    else:
        program = [sys.executable, "-m", "benchmarks.names", *sys.argv[1:], "--inside"]
        rights = [] if os.geteuid() == 0 else ["--map-root-user"]
        output("unshare", *rights, "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", *program)


if __name__ == "__main__":
    run_program(main)
