"""Stands in for vLLM: its nodes take the same options and meet at the same address. Its answer names them.

All nodes end with 1 as soon as one of them is gone.
"""

import argparse
import contextlib
import json
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser("vllm")
parser.add_argument("command", choices=["serve"])
parser.add_argument("model")
parser.add_argument("--headless", action="store_true")
parser.add_argument("--master-addr", required=True)
for option in ("--port", "--nnodes", "--node-rank", "--tensor-parallel-size", "--pipeline-parallel-size"):
    parser.add_argument(option, type=int, required=True)
#: vLLM's default
MASTER_PORT = 29501


def end_with(peer: socket.socket) -> None:
    """End this process when another node is gone."""
    with contextlib.suppress(OSError):
        peer.recv(1)
    os._exit(1)


def join(address: str) -> None:
    """Wait for the first node, and end with it."""
    while True:
        try:
            peer = socket.create_connection((address, MASTER_PORT), 5)
        except OSError:
            time.sleep(0.2)
            continue
        peer.settimeout(None)
        peer.sendall(f"{os.uname().nodename}\n".encode())
        end_with(peer)


def meet(others: int) -> list[str]:
    """Wait for all other nodes, and return the names of all."""
    names = [os.uname().nodename]
    server = socket.create_server(("", MASTER_PORT))
    for _ in range(others):
        peer, _ = server.accept()
        names.append(peer.makefile().readline().strip())
        threading.Thread(target=end_with, args=(peer,)).start()
    return names


def serve(words: argparse.Namespace) -> None:
    """Serve the list of models on the first node."""
    answer = {
        "data": [{"id": words.model, "files": sorted(one.name for one in Path(words.model).iterdir())}],
        "nodes": meet(words.nnodes - 1),
        "size": words.tensor_parallel_size * words.pipeline_parallel_size,
        "started": time.time(),
    }

    class Answer(BaseHTTPRequestHandler):
        """Answers each request with the same document."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

    ThreadingHTTPServer(("", words.port), Answer).serve_forever()


if __name__ == "__main__":
    words = parser.parse_args()
    assert words.headless == (words.node_rank > 0)
    if words.headless:
        join(words.master_addr)
    serve(words)
