"""The end of `minicluster delete`: another client may remove the release at the same time."""

import pytest
from fake_kube import FakeKube
from minicluster.errors import ToolError
from minicluster.kube.tool import CommandError
from minicluster.lifecycle import deletion
from minicluster.lifecycle.deletion import Contents

THERE = Contents(is_ours=True, clusters=["mini"], others=[], kept=[])


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_release_that_another_client_has_removed_is_removed(monkeypatch: pytest.MonkeyPatch, is_gone: bool) -> None:
    found, said = [THERE, None if is_gone else THERE], []

    def fail(*_: object) -> None:
        raise CommandError("helm uninstall", "uninstall: Release not loaded: mini: release: not found")

    monkeypatch.setattr(deletion, "search", lambda *_: (None, set()))
    monkeypatch.setattr(deletion, "read_contents", lambda *_: found.pop(0))
    monkeypatch.setattr(deletion.helm, "uninstall", fail)
    kube = FakeKube(namespace="lab")
    if is_gone:
        deletion.delete(kube, "mini", 1, said.append, lambda *_: None)
        assert said == [f"mini is removed from {kube}"]
    else:
        with pytest.raises(ToolError, match=r"^mini is not removed yet: .*; run the same command again$"):
            deletion.delete(kube, "mini", 1, said.append, lambda *_: None)


def test_claims_that_no_volume_was_bound_to_have_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = THERE._replace(kept=["mini-data", "mini-state", "mini-secret"])
    monkeypatch.setattr(deletion, "search", lambda *_: (None, set()))
    monkeypatch.setattr(deletion, "read_contents", lambda *_: kept)
    monkeypatch.setattr(deletion.helm, "uninstall", lambda *_: None)
    said: list[str] = []
    claims = {name: {"status": {"phase": phase}} for name, phase in (("mini-data", "Bound"), ("mini-state", "Pending"))}
    monkeypatch.setattr(FakeKube, "get", lambda _self, _kind, name: claims.get(name, {}))
    kube = FakeKube(namespace="lab")
    deletion.delete(kube, "mini", 1, said.append, lambda *_: None)
    assert said[1:] == [
        "kept with their data, for the next mini: mini-data, mini-secret; `kubectl delete pvc mini-data mini-secret` "
        "removes them",
        "kept, never bound to a volume: mini-state; `kubectl delete pvc mini-state` removes them",
    ]
