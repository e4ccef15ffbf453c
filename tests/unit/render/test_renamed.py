"""An upgrade adds MiniClusters to a live release, and gives none another name."""

import base64
import json
from typing import Any

import pytest
from minicluster.errors import SpecError
from minicluster.render import handover
from minicluster.render.revision import Name, refuse_renamed

LABEL = "minicluster-0.1.0"


def other(name: str, chart: str = LABEL, group: str = "", *, deleted: bool = False) -> dict[str, Any]:
    return {"name": name, "chart": chart, "group": group, "deleted": deleted}


def newcomer(name: str, *others: dict[str, Any], chart: str = "minicluster") -> handover.Newcomer:
    text = base64.b64encode(json.dumps({"chart": chart, "jobs": others}).encode()).decode()
    found = handover.newcomer({"metadata": {"name": name, "namespace": "ns"}, "others": text})
    assert found
    return found


def test_a_live_minicluster_has_no_others() -> None:
    assert handover.newcomer({"metadata": {"name": "a"}}) is None


@pytest.mark.parametrize("others", ["x", base64.b64encode(b"{}").decode(), base64.b64encode(b'{"jobs": [1]}').decode()])
def test_a_text_that_the_chart_did_not_write_is_refused(others: str) -> None:
    with pytest.raises(SpecError, match=r"^others is not what the chart writes: leave it out$"):
        handover.newcomer({"metadata": {"name": "a"}, "others": others})


@pytest.mark.parametrize(
    ("one", "kept"),
    [
        # the other one is in the upgrade too
        (newcomer("b", other("a")), {("ns", "a")}),
        (newcomer("b", other("a"), other("c")), {("", "a"), ("ns", "c")}),
        # what is left of this very one
        (newcomer("b", other("b-gpu", group="gpu")), set()),
        (newcomer("b", other("a", deleted=True)), set()),
        # one alias is turned off, another one on
        (newcomer("b", other("a", "first-1.2.3-rc.1_build.2"), chart="second"), set()),
    ],
)
def test_a_minicluster_is_added(one: handover.Newcomer, kept: set[Name]) -> None:
    refuse_renamed([one], kept | {("ns", "b")})


@pytest.mark.parametrize(
    ("one", "kept"),
    [
        (newcomer("b", other("a")), set()),
        (newcomer("b", other("c"), other("a")), {("ns", "c")}),
        (newcomer("b", other("a")), {("elsewhere", "a")}),
        (newcomer("b", other("a", "hpc-0.1.0"), chart="hpc"), set()),
        # the chart itself was installed, and is now a part of another one
        (newcomer("b", other("a"), chart="hpc"), set()),
        (newcomer("b", other("a", "hpc-0.1.0")), set()),
    ],
)
def test_another_name_is_refused(one: handover.Newcomer, kept: set[Name]) -> None:
    message = (
        r"^nameOverride can't change on the live MiniCluster a: the new name is b, and the queue of a would be lost; "
        r"keep the name a, or install b as a release of its own\. If these are two MiniClusters, remove a by one "
        r"upgrade and add b by the next$"
    )
    with pytest.raises(SpecError, match=message):
        refuse_renamed([one], kept | {("ns", "b")})
