"""The removal of a release by Helm, whose wait may end before the pods have."""

from typing import Any

import pytest
from minicluster.errors import ToolError
from minicluster.kubectl import Kubernetes
from minicluster.release import helm

#: What Helm 4.3 says of a Job whose foreground deletion goes on
EXISTS = "uninstallation completed with 1 error(s): resource Job/lab/mini still exists. status: Terminating"


class Asked:
    """Answers Helm's commands by errors, as long as there are any, and takes some seconds for each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, errors: list[str], seconds: float) -> None:
        self.lines: list[str] = []
        self.now = 100.0
        monkeypatch.setattr(helm.time, "monotonic", lambda: self.now)

        def run(_: Kubernetes, *words: str, **__: Any) -> None:
            self.lines.append(" ".join(words))
            self.now += seconds
            if errors:
                raise ToolError(f"helm uninstall mini: {errors.pop(0)}")

        monkeypatch.setattr(Kubernetes, "helm", run)


def line(seconds: int, *options: str) -> str:
    words = ("uninstall mini --cascade foreground --wait", *options, f"--timeout {seconds}s")
    return " ".join(words)


def test_helm_is_asked_again_while_the_job_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, [EXISTS, EXISTS], seconds=2)
    helm.uninstall(Kubernetes("", "lab"), "mini", 10, "--ignore-not-found")
    assert asked.lines == [line(left, "--ignore-not-found") for left in (10, 8, 6)]


def test_a_removal_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, [EXISTS] * 9, seconds=4)
    with pytest.raises(ToolError, match="still exists"):
        helm.uninstall(Kubernetes("", "lab"), "mini", 10)
    assert asked.lines == [line(left) for left in (10, 6, 2)]


def test_another_error_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, ["Kubernetes cluster unreachable"], seconds=1)
    with pytest.raises(ToolError, match="unreachable"):
        helm.uninstall(Kubernetes("", "lab"), "mini", 0)
    assert asked.lines == [line(1)]
