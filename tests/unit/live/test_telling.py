"""Which states of a MiniCluster are told again while it is waited for."""

import pytest
from minicluster.status.reporter import news

IMAGE = "correct the image's name, or set pod.imagePullSecrets for its registry"
LEAD = "Starting: the lead is Pending"
UNSCHEDULABLE = (
    f"{LEAD}: Unschedulable: 0/{{}} nodes are available: {{}} Insufficient cpu, {{}} node(s) had taints: way"
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f'{LEAD}: ErrImagePull: failed to pull and unpack image "docker.io/library/nope:1": not found: {IMAGE}',
            f'{LEAD}: ImagePullBackOff: Back-off pulling image "nope:1": {IMAGE}',
        ),
        (LEAD, f"{LEAD}: ContainerCreating"),
        (f"{LEAD}: PodInitializing", f"{LEAD}: ContainerCreating"),
        (
            "the lead's pod mini-0-x is Failed: failure 1, next try in about 10 s",
            "the lead's pod mini-0-x is Failed: failure 1, next try in about 3 s",
        ),
        (UNSCHEDULABLE.format(4, 3, 1), UNSCHEDULABLE.format(5, 4, 1)),
        (
            'the lead has no pod: Error creating: pods "mini-0-abcde" is forbidden: exceeded quota: few',
            'the lead has no pod: Error creating: pods "mini-0-fghij" is forbidden: exceeded quota: few',
        ),
        (
            f'{LEAD}: ContainerCreating: Failed to create pod sandbox: network for sandbox "0123456789abcdef"',
            f'{LEAD}: ContainerCreating: Failed to create pod sandbox: network for sandbox "fedcba9876543210"',
        ),
    ],
)
def test_a_state_that_means_the_same_is_no_news(before: str, after: str) -> None:
    assert news(before) == news(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{LEAD}: ContainerCreating", f'{LEAD}: ContainerCreating: secret "a" not found: create it'),
        (f'{LEAD}: ContainerCreating: secret "a" not found', f'{LEAD}: ContainerCreating: secret "b" not found'),
        (f"{LEAD}: ErrImagePull: no: {IMAGE}", f"{LEAD}: ErrImagePull: no: the image is not for this architecture"),
        (
            "Starting: waits for the quorum, 1 of 4 nodes are up",
            "Starting: waits for the quorum, 2 of 4 nodes are up",
        ),
        (UNSCHEDULABLE.format(4, 3, 1), LEAD),
        ("Running", "Starting: the lead has no pod"),
    ],
)
def test_another_state_is_news(before: str, after: str) -> None:
    assert news(before) != news(after)
