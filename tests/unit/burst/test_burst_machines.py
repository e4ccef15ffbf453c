import json
import subprocess
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minicluster.burst import machines, plan
from minicluster.burst.address import Address
from minicluster.flux import parse_idset
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel
from support import CERTIFICATE, deep

HOSTLIST = {
    "size": 2,
    "containers": [{"image": "i", "cores": 4, "resources": {"limits": {"nvidia.com/gpu": 2}}}],
    "flux": {"bursting": {"hostlist": "root-[0-1],vm-[0-2]"}},
}
CLUSTERS = {
    "size": 2,
    "containers": [{"image": "i", "cores": 1, "securityContext": {"runAsUser": 1000}}],
    "flux": {"logLevel": 7, "bursting": {"clusters": [{"name": "vm", "size": 3, "cores": 2, "gpus": 1}]}},
}


def member(values: dict[str, Any], name: str) -> MiniClusterModel:
    root = load({"metadata": {"name": "root"}, "spec": values})
    found = plan.find(root, name)
    return plan.member(root, found, plan.values(root, found, found.size, Address("192.0.2.7", 30093)))


def by_name(cluster: MiniClusterModel) -> dict[str, machines.File]:
    return {file.name: file for file in machines.files(cluster, CERTIFICATE)}


def test_the_folder_for_a_hostlist_has_config_certificate_r_and_start_script() -> None:
    files = by_name(member(HOSTLIST, "vm-[0-2]"))
    assert {name: file.mode for name, file in files.items()} == {
        "broker.toml": 0o644,
        "curve.cert": 0o400,
        "R": 0o644,
        "start.sh": 0o755,
        "minicluster-burst.service": 0o644,
    }
    assert tomllib.loads(files["broker.toml"].text) == {
        "access": {"allow-guest-user": True, "allow-root-owner": True},
        "bootstrap": {
            "curve_cert": "curve.cert",
            "hosts": [{"host": "root-0", "connect": "tcp://192.0.2.7:30093"}, {"host": "root-1,vm-[0-2]"}],
        },
        "resource": {"path": "R", "noverify": True},
    }
    assert json.loads(files["R"].text) == {
        "version": 1,
        "execution": {
            "R_lite": [{"rank": "0-4", "children": {"core": "0-3", "gpu": "0-1"}}],
            "starttime": 0.0,
            "expiration": 0.0,
            "nodelist": ["root-[0-1],vm-[0-2]"],
        },
    }
    assert files["R"].text.count("\n") == 1
    assert files["curve.cert"].text == CERTIFICATE
    assert [name for name, file in files.items() if "secret-key" in file.text] == ["curve.cert"]


def test_the_folder_for_a_registered_burst_lists_its_hosts_and_resources() -> None:
    files = by_name(member(CLUSTERS, "vm"))
    assert tomllib.loads(files["broker.toml"].text)["bootstrap"]["hosts"] == [
        {"host": "root-0", "connect": "tcp://192.0.2.7:30093"},
        {"host": "root-1"},
        {"host": "vm-[0-2]"},
    ]
    assert json.loads(files["R"].text)["execution"]["R_lite"] == [
        {"rank": "0-1", "children": {"core": "0"}},
        {"rank": "2-4", "children": {"core": "0-1", "gpu": "0"}},
    ]
    assert "-o-Stbon.topo=kary:0 -o-Stbon.connect_timeout=5s -o-Slog-stderr-mode=local -o-Slog-stderr-level=7" in (
        files["start.sh"].text
    )
    assert "\nUser=1000\nExecStart=/etc/minicluster/start.sh\n" in files[machines.UNIT].text


def test_r_is_left_out_when_the_node_reports_its_own_cores() -> None:
    files = by_name(member(deep(HOSTLIST, {"containers": [{"image": "i"}]}), "vm-0"))
    assert "R" not in files
    assert tomllib.loads(files["broker.toml"].text)["resource"] == {"noverify": True}


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("words", "host"), [([], "vm-0"), (["vm-1.example.com"], "vm-1.example.com")], ids=["own", "given"]
)
def test_start_sh_starts_the_broker_under_the_given_or_its_own_host_name(
    tmp_path: Any, shell: str, words: list[str], host: str
) -> None:
    for name, text in {
        "start.sh": machines.start(member(HOSTLIST, "vm-0")),
        "flux": '#!/bin/sh\nprintf "%s\\n" "$PWD" "$@"\n',
        "uname": "#!/bin/sh\necho vm-0.example.com\n",
    }.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [shell, tmp_path / "start.sh", *words],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "RUNTIME_DIRECTORY": f"{tmp_path}/a run"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        *(str(tmp_path), "start", "-o--config-path=broker.toml", "-o-Stbon.topo=kary:0", "-o-Stbon.connect_timeout=5s"),
        *("-o-Slog-stderr-mode=local", "-o-Slog-stderr-level=6", f"-o-Sstatedir={tmp_path}/state"),
        *(f"-o-Srundir={tmp_path}/a run", f"-o-Slocal-uri=local://{tmp_path}/a run/local", f"-o-Shostname={host}"),
    ]


@settings(max_examples=20)
@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 8), st.integers(1, 8), st.integers(0, 4))
def test_r_lists_each_rank_exactly_once(size: int, more: int, cores: int, theirs: int, gpus: int) -> None:
    clusters = [{"name": "vm", "size": more, "cores": theirs, "gpus": gpus}]
    values = {"size": size, "containers": [{"cores": cores}], "flux": {"bursting": {"clusters": clusters}}}
    execution = json.loads(machines.resource_set(member(values, "vm")) or "")["execution"]
    ranks = [rank for part in execution["R_lite"] for rank in parse_idset(part["rank"])]
    assert ranks == list(range(size + more))
    counts = [len(parse_idset(part["children"]["core"])) for part in execution["R_lite"]]
    assert counts == [cores, theirs]
    assert [len(parse_idset(p["children"].get("gpu", ""))) for p in execution["R_lite"]] == [0, gpus]
