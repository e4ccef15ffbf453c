"""Volumes of values on a real Kubernetes."""

from typing import Any

import yaml
from pod_jobs import QUIET
from real_cluster import IN_PODS, Install
from support import ROOT

from tools.testbed import images

pytestmark = IN_PODS


def test_the_files_of_an_image_are_read_on_all_nodes_and_written_on_none(release: Install) -> None:
    values: dict[str, Any] = yaml.safe_load((ROOT / "values-examples/volume-image.yaml").read_text())
    (runner,) = values.pop("containers")
    # the view is an image that each test cluster has
    model = runner["volumes"]["model"] | {"image": images()["flux"]["container"]["image"]}
    runner |= {"volumes": {"model": model}, "command": f"touch {model['path']}/new 2>&1; ls {model['path']}/opt"}
    del runner["image"]
    cluster = release({**values, **QUIET}, runner, mode="image")
    assert "Complete" in cluster.wait_for_end()
    lines = sorted(cluster.log(0).splitlines())
    refusal = f"touch: cannot touch '{model['path']}/new': Read-only file system"
    assert lines == sorted([refusal, "software", "view", "views"] * 2)
