"""Tests that share something run one after the other: xdist gives those of a group to one worker."""

import pytest


@pytest.mark.xdist_group("probe")
def test_xdist_sees_the_groups_of_tests(request: pytest.FixtureRequest, worker_id: str) -> None:
    if worker_id == "master":
        pytest.skip("the tests run one by one")
    # the scheduler reads the group's name from the id
    assert request.node.nodeid.endswith("@probe")
