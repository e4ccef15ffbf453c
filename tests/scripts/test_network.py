"""The IP family that a broker binds to: IPv6 only where the pod has no IPv4."""

import tomllib
from pathlib import Path

import pytest
from pods import Make, Pod

QUIET = {"logging": {"quiet": True}}
HEAD = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
IPV4 = f"{HEAD}eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
LO = "00000000000000000000000000000001 01 80 10 80       lo\n"
LINK = "fe800000000000000000000000000001 02 40 20 80     eth0\n"
GLOBAL = "fd000000000000000000000000000001 02 40 00 80     eth0\n"
GLOBAL_LO = "fd000000000000000000000000000009 01 80 00 80       lo\n"


def with_network(pod: Pod, route: str | None, addresses: str | None) -> Pod:
    """Let a pod see these instead of /proc/net/route and /proc/net/if_inet6; None is a file that is missing."""
    net = pod.root / "net"
    net.mkdir()
    for name, text in (("route", route), ("if_inet6", addresses)):
        if text is not None:
            (net / name).write_text(text)
    pod.edit("entrypoint.sh", "choose_ip_family /proc/net\n", f"choose_ip_family {net}\n")
    return pod


def config_paths(pod: Pod) -> list[Path]:
    """Return the configurations that the broker was started with; Flux takes the last one."""
    assert pod.run() == (0, "")
    [call] = pod.calls("start")
    option = "-o--config-path="
    return [Path(word.removeprefix(option)) for word in call.words if word.startswith(option)]


@pytest.mark.parametrize("route", [HEAD, ""], ids=["no route", "no table"])
@pytest.mark.parametrize("addresses", [LO + GLOBAL + LINK, LINK + GLOBAL], ids=["first", "last"])
def test_a_pod_that_has_only_ipv6_enables_it_in_broker_toml(make: Make, route: str, addresses: str) -> None:
    pod = with_network(make(QUIET, {"command": "true"}), route, addresses)
    computed, used = config_paths(pod)
    assert computed == pod.home / "minicluster/broker.toml"
    assert used.is_relative_to(pod.state)
    tables = tomllib.loads(computed.read_text())
    assert "enable_ipv6" not in tables["bootstrap"]
    tables["bootstrap"]["enable_ipv6"] = True
    assert tomllib.loads(used.read_text()) == tables


@pytest.mark.parametrize(
    ("route", "addresses"),
    [
        (IPV4, LO + GLOBAL + LINK),
        (IPV4, None),
        (HEAD, None),
        (None, GLOBAL),
        (HEAD, ""),
        (HEAD, LO + LINK),
        (HEAD, LO + GLOBAL_LO),
    ],
    ids=["both", "IPv4 only", "no IPv6", "unknown", "no address", "link-local only", "lo only"],
)
def test_a_pod_that_has_ipv4_or_no_global_ipv6_uses_broker_toml_unchanged(
    make: Make, route: str | None, addresses: str | None
) -> None:
    pod = with_network(make(QUIET, {"command": "true"}), route, addresses)
    assert config_paths(pod) == [pod.home / "minicluster/broker.toml"]


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_broker_config_that_names_enable_ipv6_is_used_unchanged(make: Make, value: str) -> None:
    text = f"[bootstrap]\nenable_ipv6 = {value}\n"
    pod = make({**QUIET, "flux": {"brokerConfig": text}}, {"command": "true"})
    assert config_paths(with_network(pod, HEAD, GLOBAL)) == [pod.home / "minicluster/broker.toml"]


def test_a_bootstrap_table_of_the_user_gets_enable_ipv6_too(make: Make) -> None:
    text = '[a]\nb = 1\n [bootstrap] # mine\ndefault_bind = "tcp://eth0:%p"\n[c]\n'
    pod = make({**QUIET, "flux": {"brokerConfig": text}}, {"command": "true"})
    _, used = config_paths(with_network(pod, HEAD, GLOBAL))
    bootstrap = {"default_bind": "tcp://eth0:%p", "enable_ipv6": True}
    assert tomllib.loads(used.read_text()) == {"a": {"b": 1}, "bootstrap": bootstrap, "c": {}}
