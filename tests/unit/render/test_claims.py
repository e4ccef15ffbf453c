"""Which changes of the values a live claim allows."""

from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.render.load import load

WAS = {"capacity": "1Gi", "storageClass": "slow", "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}
ANEW = "uninstall, delete the claim with its data (kubectl delete pvc mc-state), and install again"


def load_with(asked: dict[str, Any], was: dict[str, Any] = WAS, deleted: bool = False) -> None:
    """Load a cluster whose state claim the chart has found."""
    found = {"name": "mc-state", "place": "state", "was": was, "asked": asked, "deleted": deleted}
    load({"metadata": {"name": "mc"}, "spec": {}, "claims": [found]})


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"capacity": "1000Mi"},
        f"state.capacity is 1000Mi, the claim mc-state has 1Gi: a claim can't shrink; ask for 1Gi or more, or {ANEW}",
    ),
    (
        {"capacity": "1Gi", "storageClass": "fast"},
        f"state.storageClass is fast, the claim mc-state has slow: that is immutable; drop the value, or {ANEW}",
    ),
    (
        {"capacity": "1Gi", "storageClass": ""},
        f"state.storageClass is (none), the claim mc-state has slow: that is immutable; drop the value, or {ANEW}",
    ),
    (
        {"capacity": "2Gi", "accessModes": ["ReadWriteMany"]},
        "state.accessModes is ReadWriteMany, the claim mc-state has ReadOnlyMany, ReadWriteOnce: that is immutable; "
        f"drop the value, or {ANEW}",
    ),
]


@pytest.mark.parametrize(
    ("asked", "message"), REFUSED, ids=["smaller", "another class", "no class", "another access mode"]
)
def test_a_change_that_a_live_claim_does_not_allow_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as error:
        load_with(asked)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "asked",
    [
        {"capacity": "1024Mi"},
        {"capacity": 1073741824},
        {"capacity": "1.5Gi", "accessModes": []},
        {"capacity": "1Gi", "storageClass": None},
        {"capacity": "1Gi", "storageClass": "slow", "accessModes": ["ReadOnlyMany", "ReadWriteOnce"]},
    ],
    ids=str,
)
def test_a_change_that_a_live_claim_allows_is_accepted(asked: dict[str, Any]) -> None:
    load_with(asked)


def test_a_live_claim_without_a_storage_class_is_accepted() -> None:
    load_with({"capacity": "1Gi", "storageClass": ""}, {"capacity": "1Gi", "accessModes": ["ReadWriteOnce"]})


def test_a_claim_that_is_being_deleted_is_refused() -> None:
    with pytest.raises(SpecError) as error:
        load_with(WAS, deleted=True)
    assert str(error.value) == "state: the claim mc-state is being deleted: wait until it is gone"


@pytest.mark.parametrize("found", [1, "x", [1], [{}], [{"name": "a"}], {"a": 1}], ids=str)
def test_claims_that_the_chart_does_not_write_are_refused(found: object) -> None:
    with pytest.raises(SpecError, match=r"^claims is not what the chart writes: leave it out$"):
        load({"metadata": {"name": "mc"}, "spec": {}, "claims": found})


@pytest.mark.parametrize("state", [{"capacity": "1Gi"}, {"claimName": "x"}], ids=str)
def test_a_state_with_capacity_or_a_claim_name_is_on_a_claim(state: dict[str, Any]) -> None:
    cluster = load({"metadata": {"name": "mc"}, "spec": {"state": state}})
    assert cluster.state_claim
    assert cluster.keeps_state
