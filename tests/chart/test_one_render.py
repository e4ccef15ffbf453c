"""What the batch of a test renders is what Helm renders."""

from pathlib import Path
from typing import Any

import pytest
from batch import Batch, case
from support import EVERYTHING, Helm, by_name

from tools.clients import ProcessError

LIVE = ("--kube-version", "1.36.3", "--api-versions", "batch/v1/Job")
VALUES: list[dict[str, Any]] = [{}, EVERYTHING, {"size": 3, "flux": None, "containers": [{"cores": 100_000}]}]


def test_a_batch_has_the_objects_of_each_case(helm: Helm, tmp_path: Path) -> None:
    batch = Batch(helm, tmp_path, map(case, VALUES), *LIVE)
    for values in VALUES:
        assert by_name(batch.stream(case(values))) == by_name(helm.template(*LIVE, values=values))


def test_a_batch_fails_the_case_that_can_not_be_rendered_alone(helm: Helm, tmp_path: Path) -> None:
    old = ("--kube-version", "1.27.0", "--api-versions", "batch/v1/Job")
    cases = [case({}), case({"flux": {"minimalService": True}}), case({"size": 2})]
    batch = Batch(helm, tmp_path, cases, *old)
    assert by_name(batch.stream(cases[0]))["Job", "flux-sample"]["spec"]["completions"] == 1
    assert by_name(batch.stream(cases[2]))["Job", "flux-sample"]["spec"]["completions"] == 2
    with pytest.raises(ProcessError, match=r"flux\.minimalService needs Kubernetes 1\.28"):
        batch.stream(cases[1])
