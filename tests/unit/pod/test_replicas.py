"""A size that is requested by the replicas of the Deployment, with a fake Flux and a fake Kubernetes."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from autoscale import Policy
from fake_flux import FakeFlux, install
from kube import KubeError
from log import Once
from scaler import Replicas
from state import requested_size


@dataclass
class FakeKube:
    """The Deployment as a new one is, and the replicas that were written."""

    replicas: int = 1
    annotations: dict[str, str] = field(default_factory=dict)
    written: list[int] = field(default_factory=list)
    error: str = ""
    name: str = "mc"

    def get_deployment(self) -> dict[str, Any]:
        metadata = {"annotations": dict(self.annotations)} if self.annotations else {}
        return {"metadata": metadata, "spec": {"replicas": self.replicas}}

    def set_replicas(self, _: dict[str, Any], replicas: int, annotations: dict[str, str]) -> None:
        if self.error:
            raise KubeError(self.error)
        self.written.append(replicas)
        self.replicas = replicas
        self.annotations |= annotations


@dataclass
class Setup:
    """The replicas, their Deployment, and the Flux that gets the requests."""

    flux: FakeFlux
    kube: FakeKube = field(default_factory=FakeKube)
    once: Once = field(default_factory=Once)
    replicas: Replicas = field(default_factory=Replicas)

    def look(self, size: int) -> int:
        """Look once, at a cluster that may have from 2 to 8 nodes; return the size that is requested."""
        self.replicas.ask(self.flux, self.kube, self.once, size, Policy(2, 8, 1, 60))
        return requested_size(self.flux)


@pytest.fixture
def mc(monkeypatch: pytest.MonkeyPatch) -> Setup:
    install(monkeypatch)
    return Setup(FakeFlux({}, set()))


def test_the_agent_writes_the_size_of_a_new_cluster_and_requests_nothing(mc: Setup) -> None:
    assert mc.look(3) == 0
    assert (mc.kube.replicas, mc.kube.annotations) == (3, {"minicluster/replicas": "3"})
    mc.look(3)
    assert mc.kube.written == [3], "nothing has changed since"


def test_replicas_of_a_new_deployment_are_a_request_if_somebody_changed_them(mc: Setup) -> None:
    mc.kube.replicas = 6
    assert mc.look(3) == 6
    assert mc.kube.replicas == 6


def test_a_request_stays_in_the_replicas_until_the_size_changes(mc: Setup) -> None:
    mc.look(3)
    mc.kube.replicas = 6
    assert [mc.look(3), mc.look(3)] == [6, 6]
    assert mc.kube.replicas == 6
    # a step towards it
    assert mc.look(5) == 6
    assert mc.kube.replicas == 5
    assert mc.look(6) == 6
    assert mc.kube.replicas == 6
    assert mc.kube.written == [3, 6, 5, 6]


def test_a_size_that_the_queue_needs_is_written_and_is_no_request(mc: Setup) -> None:
    mc.look(3)
    assert [mc.look(8), mc.look(8)] == [0, 0]
    assert mc.kube.replicas == 8


def test_a_smaller_request_waits_in_the_replicas_while_nodes_are_busy(mc: Setup) -> None:
    mc.look(8)
    mc.kube.replicas = 2
    assert [mc.look(8), mc.look(8)] == [2, 2]
    assert mc.kube.replicas == 2
    assert mc.look(5) == 2
    assert mc.kube.replicas == 5


@pytest.mark.parametrize(("asked", "requested"), [(0, 2), (1, 2), (9, 8), (2**31 - 1, 8)])
def test_a_request_beyond_the_limits_is_brought_between_them_and_logged_once(
    mc: Setup, capsys: pytest.CaptureFixture[str], asked: int, requested: int
) -> None:
    mc.look(3)
    for _ in range(2):
        mc.kube.replicas = asked
        assert mc.look(3) == requested
        assert mc.kube.replicas == requested
    assert capsys.readouterr().err == (
        f"minicluster-agent: replicas of Deployment mc are {asked}, and the size is from 2 to 8: "
        f"{requested} is requested\n"
    )


def test_a_size_that_was_set_by_hand_above_the_limit_is_written_as_it_is(mc: Setup) -> None:
    assert mc.look(12) == 0
    assert mc.kube.replicas == 12


def test_a_request_is_in_flux_before_it_is_marked_as_seen(mc: Setup) -> None:
    mc.look(3)
    mc.kube.replicas, mc.kube.error = 6, "PATCH: 409 the object has been modified"
    with pytest.raises(KubeError):
        mc.look(3)
    assert requested_size(mc.flux) == 6
    mc.kube.error = ""
    assert mc.look(3) == 6
    assert mc.kube.annotations == {"minicluster/replicas": "6"}


def test_a_size_that_could_not_be_written_is_written_at_the_next_look(mc: Setup) -> None:
    mc.look(3)
    mc.kube.error = "PATCH: 503"
    with pytest.raises(KubeError):
        mc.look(4)
    mc.kube.error = ""
    mc.look(4)
    assert mc.kube.replicas == 4


def test_an_agent_that_starts_again_takes_no_size_for_a_request(mc: Setup) -> None:
    mc.look(3)
    mc.replicas = Replicas()
    assert mc.look(5) == 0
    assert mc.kube.replicas == 5


def test_the_size_is_written_into_a_deployment_that_was_made_anew(mc: Setup) -> None:
    mc.look(3)
    mc.kube.replicas, mc.kube.annotations = 1, {}
    assert mc.look(3) == 0
    assert mc.kube.replicas == 3


@pytest.mark.parametrize("text", ["many", "-1"])
def test_an_annotation_that_is_no_number_makes_the_replicas_a_request(mc: Setup, text: str) -> None:
    mc.kube.annotations = {"minicluster/replicas": text}
    mc.kube.replicas = 4
    assert mc.look(3) == 4
    assert mc.kube.annotations == {"minicluster/replicas": "4"}
