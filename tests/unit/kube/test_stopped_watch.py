"""A watch that is silent ends as soon as it is told to stop, and so do the processes of kubectl."""

import os
import threading
import time
from pathlib import Path

import pytest
from minicluster.kube.kubectl import Kubernetes

from tools.clients import until


def test_a_silent_watch_ends_when_it_is_told_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'case "$*" in *--watch*) echo $$ >>"${0%/*}/started"; exec sleep 600 ;; esac'
    (tmp_path / "kubectl").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    stop, looks = threading.Event(), list[float]()

    def watch() -> None:
        looks.extend(time.monotonic() for _ in Kubernetes().within(None, stop).sights("mini", "a=b", 600))

    thread = threading.Thread(target=watch)
    thread.start()
    until(lambda: (tmp_path / "started").exists() and len((tmp_path / "started").read_text().split()) == 2)
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert looks
    for pid in (tmp_path / "started").read_text().split():
        assert not Path("/proc", pid).exists()
