"""The name of the job that runs the values' command."""

from typing import Any

import pytest
from minicluster.render import constants, work
from minicluster.render.model import MiniClusterModel


def cluster(runner: dict[str, Any], **flux: str) -> MiniClusterModel:
    spec = {**constants.default_values(), "containers": [runner]}
    spec["flux"] = {**spec["flux"], **flux}
    return MiniClusterModel("demo", "default", {}, {}, spec, "")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("lmp -in in.lj", "lmp"),
        ("/opt/bin/lmp -in 'a b'", "lmp"),
        (["/opt/bin/lmp", "a b"], "lmp"),
        ("OMP_NUM_THREADS=2 ./pi.py 3", "pi.py"),
        ("python3 train.py | tee log", "python3"),
        ("true", "true"),
        # more than a program
        ("cd /data\nlmp -in in.lj\n", "demo"),
        ("for i in 1 2; do echo $i; done", "demo"),
        ("sh -c 'a; b'", "demo"),
        ("$RUN a", "demo"),
        ("'open", "demo"),
        ("", "demo"),
        (["é\n$(id)"], "demo"),
    ],
)
def test_a_job_has_the_name_of_its_program(command: Any, name: str) -> None:
    assert work.job_name(cluster({"command": command})) == name


@pytest.mark.parametrize(
    ("flux", "named"),
    [
        ({}, ["--job-name=lmp"]),
        ({"submitCommand": "flux submit"}, ["--job-name=lmp"]),
        ({"optionFlags": "--job-name=mine"}, []),
        ({"optionFlags": "--job-name mine"}, []),
        ({"submitCommand": "srun"}, []),
    ],
)
def test_a_name_of_the_user_wins_and_another_launcher_gets_none(flux: dict[str, str], named: list[str]) -> None:
    words = work.submit(cluster({"command": "lmp"}, **flux))
    assert [word for word in words if word.startswith("--job-name=l")] == named
