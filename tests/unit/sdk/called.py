"""Runs the calls of the SDK's functions on this machine, as a job does on a node."""

import subprocess
import tempfile
from base64 import b64decode
from pathlib import Path
from typing import Any

from minicluster.sdk import FinishedJob
from minicluster.sdk.job_queue import Call, FunctionFuture

#: Keeps the value that `flux kvs put` gets
FLUX = '#!/bin/sh\n[ "$1" = kvs ] && cat >"$(dirname "$0")/returned"\n'


def run(call: Call, **environment: str) -> FinishedJob:
    """Return how the job of a call ends."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in call.files.items():
            (folder / path).write_bytes(b64decode(text))
        (folder / "flux").write_text(FLUX)
        (folder / "flux").chmod(0o755)
        words = [word.replace("{{tmpdir}}", name) for word in call.words]
        variables = {"PATH": f"{name}:{environment.pop('PATH', '/usr/local/bin:/usr/bin:/bin')}", **environment}
        done = subprocess.run(words, env=variables, cwd="/", capture_output=True, text=True, timeout=60, check=False)
        kept = folder / "returned"
        returned = kept.read_text() if kept.exists() else ""
    pieces = (("stdout", done.stdout), ("stderr", done.stderr))
    reason = f"failed with exit code {done.returncode}" if done.returncode else ""
    return FinishedJob("f1", done.returncode, pieces, reason, returned=returned)


def submit(call: Call, **_: Any) -> FunctionFuture:
    """Run a call as `MiniCluster.submit` would, and return its future."""
    future = FunctionFuture(lambda: None)
    future.end(run(call))
    return future
