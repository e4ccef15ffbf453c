"""Tests that share something run one after the other: xdist gives those of a group to one worker."""

import pytest


@pytest.mark.xdist_group("probe")
def test_xdist_sees_the_groups_of_tests(request: pytest.FixtureRequest) -> None:
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("this is no worker of --dist loadgroup")
    # the scheduler reads the group's name from the id
    assert request.node.nodeid.endswith("@probe")
