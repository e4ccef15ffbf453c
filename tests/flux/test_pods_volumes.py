"""Volumes of values on a real Kubernetes."""

from pod_jobs import QUIET
from real_cluster import IN_PODS, Install, example

from tools.testbed import images

pytestmark = IN_PODS


def test_the_files_of_an_image_are_read_on_all_nodes_and_written_on_none(release: Install) -> None:
    values, runner = example("volume-image")
    # the view is an image that each test cluster has
    model = runner["volumes"]["model"] | {"image": images()["flux"]["container"]["image"]}
    runner |= {"volumes": {"model": model}, "command": "touch /model/new 2>&1; ls /model/opt"}
    cluster = release({**values, **QUIET}, runner, mode="image")
    assert "Complete" in cluster.wait_for_end()
    refusal = "touch: cannot touch '/model/new': Read-only file system"
    assert sorted(cluster.log(0).splitlines()) == sorted([refusal, "software", "view", "views"] * 2)
