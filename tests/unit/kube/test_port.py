"""The seconds that requests have."""

import math

import pytest
from minicluster.kube.kubectl import Kubernetes


@pytest.mark.parametrize(
    ("limit", "most", "seconds"),
    [
        (None, 30, 30),
        (None, 0.3, 0.3),
        (None, math.inf, math.inf),
        (300, 30, 30),
        (5, 30, 5),
        (5, math.inf, 5),
        (0, 30, 1),
        (0, 0.3, 0.3),
    ],
)
def test_a_request_ends_with_the_deadline_and_has_a_second_at_least(
    limit: float | None, most: float, seconds: float
) -> None:
    found = Kubernetes().within(limit).request_seconds(most)
    assert found <= seconds
    assert found == pytest.approx(seconds, abs=0.5)
