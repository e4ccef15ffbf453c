"""A burst's release is installed and resized also after a Helm that was killed while it changed it."""

import json
from typing import Any

import pytest
from minicluster.burst.install import How, upgrade
from minicluster.burst.plan import Burst
from minicluster.burst.root import BurstRequest
from minicluster.errors import ToolError
from minicluster.kube.tool import CommandError
from minicluster.release import revisions

BUSY = "UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"
HALF_REMOVED = 'UPGRADE FAILED: "b0" has no deployed releases'
UPGRADE = "helm upgrade --install b0 chart --values - --post-renderer minicluster"
RECORD = "kubectl delete secret sh.helm.release.v1.b0.v1 --ignore-not-found --wait=false"


class Place:
    """A namespace with a release that a killed Helm has left in a state, which some commands end."""

    def __init__(self, status: str, why: str, ends: tuple[str, ...]) -> None:
        self.status, self.why, self.ends = status, why, ends
        self.done: list[str] = []

    def _run(self, *words: str) -> str:
        self.done.append(" ".join(words))
        self.why = "" if self.done[-1].startswith(self.ends) else self.why
        if "upgrade" in words and self.why:
            raise CommandError("helm upgrade", self.why)
        history = [{"revision": 1, "status": self.status, "chart": "minicluster-0.1.0"}]
        return "v4.0.0" if "version" in words else json.dumps(history)

    def helm(self, *words: str, stdin: str = "", seconds: float = 0) -> str:
        assert stdin in ("", '{"size": 2}') and seconds >= 0
        return self._run("helm", *words)

    def kubectl(self, *words: str) -> str:
        return self._run("kubectl", *words)


@pytest.mark.parametrize(
    ("status", "why", "ends", "done"),
    [
        ("pending-install", BUSY, RECORD, [UPGRADE, "helm history b0 --output=json", RECORD, UPGRADE]),
        ("uninstalling", HALF_REMOVED, "helm uninstall", [UPGRADE, "helm uninstall b0", UPGRADE]),
    ],
)
def test_what_a_killed_helm_has_begun_is_ended_first(
    monkeypatch: pytest.MonkeyPatch, status: str, why: str, ends: str, done: list[str]
) -> None:
    place = _upgrade(monkeypatch, status, why, ends)
    assert [line.partition(" --cascade")[0] for line in place.done] == done


def test_another_failure_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolError, match="exceeded quota"):
        _upgrade(monkeypatch, "deployed", "exceeded quota", "nothing")


def _upgrade(monkeypatch: pytest.MonkeyPatch, status: str, why: str, ends: str) -> Place:
    place: Any = Place(status, why, (ends,))
    monkeypatch.setattr(revisions, "KILLED_SECONDS", 0.0)
    monkeypatch.setattr("minicluster.release.helm.is_helm_3", lambda: False)
    burst = Burst("b0", 2, 4, "b0-[0-3]", is_release=True)
    upgrade(BurstRequest(place, place, burst, place), {"size": 2}, How(None, "chart", (), 60.0))
    return place
