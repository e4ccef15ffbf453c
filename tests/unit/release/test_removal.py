"""The removal of a release by Helm."""

import pytest
from minicluster.kube.kubectl import Kubernetes
from minicluster.release import helm


@pytest.mark.parametrize(("version", "wait"), [(b"v3.18.0", "--wait"), (b"v4.3.1", "--wait=legacy")])
def test_each_helm_waits_until_the_pods_are_gone(monkeypatch: pytest.MonkeyPatch, version: bytes, wait: str) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(helm, "run", lambda *_, **__: version)
    monkeypatch.setattr(Kubernetes, "helm", lambda _, *words, **__: asked.append(words))
    helm.uninstall(Kubernetes("", "lab"), "mini", 9.5, "--ignore-not-found")
    line = f"uninstall mini --cascade foreground {wait} --timeout 10s --ignore-not-found"
    assert asked == [tuple(line.split())]
