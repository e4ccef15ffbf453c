"""A root and its burst, as Helm and `minicluster render` make them: one table of hosts, rank by rank."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from minicluster.flux import expand_hosts
from support import Helm, front_door, one

ROOTS: dict[str, dict[str, Any]] = {
    "sizes": {"size": 3, "flux": {"bursting": {"clusters": [{"name": "b0", "size": 2}, {"name": "b1", "size": 1}]}}},
    "elastic": {"size": 2, "maxSize": 9, "flux": {"bursting": {"clusters": [{"size": 12}, {"name": "b1"}]}}},
    "one": {"nameOverride": "root", "flux": {"bursting": {"clusters": [{"name": "b1"}]}}},
    "groups": {
        "size": 2,
        "groups": [
            {"name": "gpu", "size": 0, "maxSize": 2, "cores": 8, "gpus": 4, "properties": ["a100"]},
            {"name": "spot", "resources": {"limits": {"cpu": 2}}},
        ],
        "flux": {"bursting": {"clusters": [{"size": 3}, {"name": "b1"}]}},
    },
    "resources": {
        "size": 2,
        "containers": [{"image": "i", "cores": 2}],
        "flux": {"bursting": {"clusters": [{"size": 3, "cores": 8, "gpus": 1}, {"name": "b1", "size": 4}]}},
    },
}


def rendered(helm: Helm, release: str, values: dict[str, Any]) -> dict[str, str]:
    """Return the files of a cluster's ConfigMap, which are those of the post-renderer (test_post_renderer.py)."""
    plain = helm.template("--skip-tests", values=values, release=release)
    stream = CliRunner().invoke(front_door, ["render", "--random-curve"], input=plain).stdout
    files: dict[str, str] = one(stream, "ConfigMap", f"{release}-config")["data"]
    return files


def hosts(files: dict[str, str]) -> list[str]:
    """Return the host of each rank."""
    entries = tomllib.loads(files["broker.toml"])["bootstrap"]["hosts"]
    return [host for entry in entries for host in expand_hosts(entry["host"])]


def setting(files: dict[str, str], name: str) -> str:
    """Return a setting."""
    words = dict(word.partition("=")[::2] for word in shlex.split(files["settings.sh"], comments=True) if "=" in word)
    return words[name]


@pytest.mark.any_helm
@pytest.mark.parametrize("name", ROOTS)
def test_root_and_burst_are_rendered_with_the_same_host_table(helm: Helm, tmp_path: Path, name: str) -> None:
    file = tmp_path / "root.json"
    file.write_text(json.dumps(ROOTS[name]))
    made = CliRunner().invoke(
        front_door, ["burst", "values", "root", "b1", "--root-values", str(file), "--address", "192.0.2.7:30093"]
    )
    assert made.exit_code == 0, made.output
    root = rendered(helm, "root", ROOTS[name])
    burst = rendered(helm, "b1", yaml.safe_load(made.stdout))
    assert hosts(root) == hosts(burst)
    assert setting(root, "mc_resource_set") == setting(burst, "mc_resource_set")
    assert setting(burst, "mc_joins") == "root at 192.0.2.7:30093"
