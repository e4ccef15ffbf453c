import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minicluster.errors import SpecError
from minicluster.pod import programs
from minicluster.render import broker, model
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel
from support import nested

Make = Callable[..., MiniClusterModel]

START = [
    "flux",
    "start",
    "-o--config-path=/mnt/flux/minicluster/broker.toml",
    "-o-Sstatedir=/mnt/flux/config/var/lib/flux",
    "-o-Srundir=/mnt/flux/config/run/flux",
    "-o-Slocal-uri=local:///mnt/flux/config/run/flux/local",
    "-o-Stbon.topo=kary:256",
    "-o-Stbon.connect_timeout=5s",
    "-o-Sbroker.cleanup-timeout=10s",
    "-o-Sbroker.shutdown-timeout=10s",
    "-o-Slog-stderr-mode=local",
    "-o-Slog-stderr-level=3",
]


@pytest.mark.parametrize(
    ("size", "max_size", "min_size", "expected"),
    [
        (1, None, None, None),
        (4, None, None, None),
        (4, 4, None, None),
        (4, 8, None, 4),
        (4, 8, 1, 1),
        (4, 8, 4, 4),
        (4, 4, 2, 2),
        (4, None, 2, 2),
    ],
)
def test_the_quorum_is_min_size_or_size_and_is_set_only_when_needed(
    cluster_of: Make, size: int, max_size: int | None, min_size: int | None, expected: int | None
) -> None:
    cluster = cluster_of({"size": size, "maxSize": max_size, "minSize": min_size})
    assert broker.quorum(cluster) == expected
    flags = [word for word in broker.start(cluster) if "quorum" in word]
    assert flags == ([] if expected is None else [f"-o-Sbroker.quorum={expected}"])


@pytest.mark.parametrize(
    ("autoscaling", "min_size", "expected"),
    [
        ({"enabled": True}, None, 1),
        ({"enabled": True, "min": 2}, None, 2),
        ({"enabled": True, "min": 2}, 1, 1),
        ({"enabled": False, "min": 2}, None, 4),
    ],
    ids=str,
)
def test_the_quorum_of_an_autoscaled_cluster_is_its_smallest_size(
    cluster_of: Make, autoscaling: dict[str, Any], min_size: int | None, expected: int
) -> None:
    cluster = cluster_of({"size": 4, "maxSize": 8, "minSize": min_size, "autoscaling": autoscaling})
    assert [word for word in broker.start(cluster) if "quorum" in word] == [f"-o-Sbroker.quorum={expected}"]


@pytest.mark.parametrize("spec", [{}, {"archive": {"path": "/a/b"}}, {"state": {"claimName": "queue"}}], ids=str)
def test_the_kvs_is_checkpointed_often(cluster_of: Make, spec: dict[str, Any]) -> None:
    """A kill loses what is not in a checkpoint: Flux makes one when the module is unloaded, or in this period."""
    assert tomllib.loads(broker.config(cluster_of(spec)))["kvs"] == {"checkpoint-period": "0.02s"}


@pytest.mark.parametrize(("seconds", "period"), [(0.5, "0.5s"), (30, "30s"), (86400, "86400s")])
def test_the_period_of_checkpoints_is_a_value(cluster_of: Make, seconds: float, period: str) -> None:
    spec = {"state": {"syncSeconds": seconds}}
    assert tomllib.loads(broker.config(cluster_of(spec)))["kvs"] == {"checkpoint-period": period}


def test_flux_asks_who_knows_locations_before_it_checks_a_job(cluster_of: Make) -> None:
    tables = tomllib.loads(broker.config(cluster_of({"flux": {"locations": True}})))
    plugins = ["defaults", "constraints", "/mnt/flux/minicluster/frobnicator.py"]
    assert tables["ingest"]["frobnicator"] == {"plugins": plugins}
    assert plugins[-1].rpartition("/")[2] in programs()


def test_the_defaults_render_to_this_broker_toml(cluster_of: Make) -> None:
    assert tomllib.loads(broker.config(cluster_of({"size": 4}))) == {
        "access": {"allow-guest-user": True, "allow-root-owner": True},
        "ingest": {"validator": {"plugins": ["jobspec", "/mnt/flux/minicluster/feasible.py"]}},
        "bootstrap": {
            "curve_cert": "/mnt/flux/config/curve/curve.cert",
            "default_port": 8050,
            "default_bind": "tcp://eth0:%p",
            "default_connect": "tcp://%h.flux-sample.ns.svc.cluster.local.:%p",
            "hosts": [{"host": "flux-sample-[0-3]"}],
        },
        "job-manager": {"inactive-num-limit": 10000},
        "kvs": {"checkpoint-period": "0.02s"},
        "resource": {"path": "/mnt/flux/config/etc/flux/system/R", "noverify": True},
        "sched-fluxion-qmanager": {"queue-policy": "conservative"},
        "sched-fluxion-resource": {"match-policy": "lonode"},
    }


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        ({"size": 2, "maxSize": 100_000}, ["bootstrap", "hosts"], [{"host": "flux-sample-[0-99999]"}]),
        (
            {"network": {"headlessName": "net", "clusterDomain": "k8s.example"}},
            ["bootstrap", "default_connect"],
            "tcp://%h.net.ns.svc.k8s.example.:%p",
        ),
        ({"network": {"interface": "*"}}, ["bootstrap", "default_bind"], "tcp://*:%p"),
        ({}, ["bootstrap", "default_bind"], "tcp://eth0:%p"),
        ({"pod": {"hostNetwork": True}}, ["bootstrap", "default_bind"], "tcp://*:%p"),
        (
            {"pod": {"hostNetwork": True}, "network": {"interface": "ib0"}},
            ["bootstrap", "default_bind"],
            "tcp://ib0:%p",
        ),
        (
            {"flux": {"container": {"mountPath": "/opt/x"}}},
            ["bootstrap", "curve_cert"],
            "/opt/x/config/curve/curve.cert",
        ),
        ({"flux": {"container": {"mountPath": "/x"}}}, ["resource", "path"], "/x/config/etc/flux/system/R"),
        ({"flux": {"scheduler": {"queuePolicy": "hybrid"}}}, ["sched-fluxion-qmanager"], {"queue-policy": "hybrid"}),
        ({"flux": {"scheduler": {"matchPolicy": "first"}}}, ["sched-fluxion-resource"], {"match-policy": "first"}),
        (
            {"flux": {"scheduler": {"simple": True}}},
            ["modules"],
            {"alternatives": {"sched": "sched-simple", "feasibility": "sched-simple"}},
        ),
    ],
    ids=lambda x: str(x)[:50],
)
def test_broker_toml_follows_the_spec(
    cluster_of: Make, spec: dict[str, Any], path: list[str], expected: object
) -> None:
    value: Any = tomllib.loads(broker.config(cluster_of(spec)))
    for key in path:
        value = value[key]
    assert value == expected


def test_broker_toml_for_the_simple_scheduler_has_no_fluxion_queue_policy(cluster_of: Make) -> None:
    tables = tomllib.loads(broker.config(cluster_of({"flux": {"scheduler": {"simple": True}}})))
    assert "sched-fluxion-qmanager" not in tables


def test_a_broker_config_of_the_user_is_kept_as_given(cluster_of: Make) -> None:
    text = "# mine\n[bootstrap]\r\nhosts = [ ]  # é\n\n\n"
    text = text.replace("\r", "")
    assert broker.config(cluster_of({"flux": {"brokerConfig": text}})) == text


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("", 8050),
        ("a = 1", 8050),
        ("[bootstrap]\ndefault_port = 9000", 9000),
        ("bootstrap = 3", 8050),
        ("[bootstrap]\ndefault_port = 'x'", 8050),
    ],
)
def test_the_port_of_the_brokers_is_ours_or_that_of_the_users_own_broker_toml(
    cluster_of: Make, text: str, port: int
) -> None:
    assert broker.port(cluster_of({"flux": {"brokerConfig": text}})) == port


FITS = """[bootstrap]
curve_cert = "/mnt/flux/config/curve/curve.cert"
default_connect = "tcp://%h.mc.ns.svc.cluster.local:%p"
hosts = [{host = "mc-0"}, {host = "mc-[1-3],other"}]
[resource]
path = "/mnt/flux/config/etc/flux/system/R"
"""


@pytest.mark.parametrize(
    "text",
    [FITS, FITS.replace("/mnt/flux/config/", "/mine/").replace("%h.mc.ns.svc.cluster.local", "%h.example.com")],
    ids=["own", "elsewhere"],
)
def test_a_broker_config_that_fits_the_cluster_is_taken(cluster_of: Make, text: str) -> None:
    assert cluster_of({"size": 2, "maxSize": 4, "flux": {"brokerConfig": text}}, "mc")


@pytest.mark.parametrize(
    "text",
    [
        "bootstrap = 3\nresource = 4\nsched-fluxion-qmanager = 5\n",
        "[bootstrap]\nhosts = ['mc-0', {host = 3}]\n",
        "[bootstrap]\nhosts = [{host = 'mc-[0'}]\n",
        "[bootstrap]\nhosts = 1\n",
    ],
)
def test_a_broker_config_that_flux_refuses_is_left_to_flux(cluster_of: Make, text: str) -> None:
    assert list(broker.remarks(cluster_of({"flux": {"brokerConfig": text}}))) == []


@pytest.mark.parametrize("policy", ["fcfs", "easy", "hybrid", "conservative"])
def test_a_policy_that_fails_waiting_jobs_is_remarked(cluster_of: Make, policy: str) -> None:
    why = "by which Fluxion may fail a job whose nodes are not up: use conservative"
    text = f"[sched-fluxion-qmanager]\nqueue-policy = '{policy}'\n"
    own = f"flux.brokerConfig has the queue-policy {policy}, {why}"
    fails = policy in broker.FAILING_POLICIES
    assert list(broker.remarks(cluster_of({"flux": {"brokerConfig": text}}))) == [own] * fails
    if policy != "fcfs":  # refused
        asked = cluster_of({"flux": {"scheduler": {"queuePolicy": policy}}})
        assert list(broker.remarks(asked)) == [f"flux.scheduler.queuePolicy is {policy}, {why}"] * fails


def test_brokers_that_know_no_hosts_are_remarked(cluster_of: Make) -> None:
    remark = "flux.brokerConfig has no bootstrap.hosts, so each broker is an instance of its own: give the hosts"
    assert list(broker.remarks(cluster_of({"size": 2, "flux": {"brokerConfig": "a = 1"}}))) == [remark]
    assert list(broker.remarks(cluster_of({"flux": {"brokerConfig": "a = 1"}}))) == []
    assert list(broker.remarks(cluster_of({"size": 2, "flux": {"brokerConfig": FITS}}, "mc"))) == []


@pytest.mark.parametrize("text", ["[a", "a = ", "a = 1\na = 2", "just words"])
def test_a_broker_config_that_is_not_toml_is_refused(cluster_of: Make, text: str) -> None:
    with pytest.raises(SpecError, match=r"^flux\.brokerConfig is not TOML: [^\n]+$"):
        broker.config(cluster_of({"flux": {"brokerConfig": text}}))


def test_the_defaults_start_the_broker_with_these_words(cluster_of: Make) -> None:
    assert broker.start(cluster_of({"size": 4})) == START


def _replaced(old: str, *new: str) -> list[str]:
    at = next(i for i, word in enumerate(START) if word.startswith(old))
    return [*START[:at], *new, *START[at + 1 :]]


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("flux.wrap", "strace,-e,network", [*START[:3], "--wrap=strace,-e,network", *START[3:]]),
        ("flux.topology", "binomial", _replaced("-o-Stbon.topo", "-o-Stbon.topo=binomial")),
        ("flux.connectTimeout", "1.5m", _replaced("-o-Stbon.connect", "-o-Stbon.connect_timeout=1.5m")),
        ("flux.connectTimeout", "", _replaced("-o-Stbon.connect")),
        ("flux.connectTimeout", "0", _replaced("-o-Stbon.connect")),
        ("flux.connectTimeout", "0s", _replaced("-o-Stbon.connect")),
        ("flux.connectTimeout", "0.0ms", _replaced("-o-Stbon.connect")),
        ("flux.logLevel", 0, _replaced("-o-Slog-stderr-level", "-o-Slog-stderr-level=0")),
        ("flux.logLevel", 7, _replaced("-o-Slog-stderr-level", "-o-Slog-stderr-level=7")),
        ("logging.debug", True, _replaced("-o-Slog-stderr-level", "-o-Slog-stderr-level=6")),
        ("logging.quiet", True, _replaced("-o-Slog-stderr-level", "-o-Slog-stderr-level=0")),
        ("flux.disableSocket", True, [w for w in START if "local-uri" not in w]),
        ("logging.zeromq", True, [*START[:8], "-o-Stbon.zmqdebug=1", *START[8:]]),
        ("flux.container.mountPath", "/x", [word.replace("/mnt/flux", "/x") for word in START]),
    ],
)
def test_the_words_that_start_the_broker_follow_the_spec(
    cluster_of: Make, path: str, value: object, expected: list[str]
) -> None:
    assert broker.start(cluster_of({"size": 4} | nested(path.split("."), value))) == expected


@pytest.mark.parametrize(
    ("level", "logging", "shown", "in_file"),
    [
        (None, {}, 3, True),
        (None, {"debug": True}, 6, False),
        (5, {}, 5, False),
        (7, {"debug": True}, 7, False),
        (6, {"quiet": True}, 0, True),
        (None, {"debug": True, "quiet": True}, 0, True),
    ],
)
def test_the_log_of_a_broker_is_on_stderr_or_in_a_file(
    cluster_of: Make, level: int | None, logging: dict[str, bool], shown: int, in_file: bool
) -> None:
    cluster = cluster_of({"flux": {"logLevel": level}, "logging": logging})
    assert model.has_log_file(cluster) is in_file
    assert broker.start(cluster)[-1] == f"-o-Slog-stderr-level={shown}"


@given(
    interface=st.from_regex(r"[-_.:a-zA-Z0-9\[\]]{1,20}", fullmatch=True),
    domain=st.from_regex(r"[a-z0-9]([-.a-z0-9]{0,20}[a-z0-9])?", fullmatch=True),
    mount=st.from_regex(r"(/[-._a-zA-Z0-9]{1,10}){1,3}", fullmatch=True),
)
def test_broker_toml_reads_back_as_it_was_written(cluster_of: Make, interface: str, domain: str, mount: str) -> None:
    spec = {
        "network": {"interface": interface, "clusterDomain": domain},
        "flux": {"container": {"mountPath": mount}},
    }
    bootstrap = tomllib.loads(broker.config(cluster_of(spec)))["bootstrap"]
    assert bootstrap["default_bind"] == f"tcp://{interface}:%p"
    assert bootstrap["default_connect"] == f"tcp://%h.flux-sample.ns.svc.{domain}.:%p"
    assert bootstrap["curve_cert"] == f"{mount}/config/curve/curve.cert"


@pytest.mark.parametrize("grace", [2, 5, 8, 10, 12, 16, 20, 26])
def test_a_short_grace_period_leaves_time_for_the_archive(grace: int) -> None:
    cluster = load({"metadata": {"name": "flux"}, "spec": {"pod": {"terminationGracePeriodSeconds": grace}}})
    leave, kill, rest = model.grace(cluster)
    assert leave + kill + rest == grace
    assert rest >= grace / 4 - 1
    attributes = dict(word[4:].split("=") for word in broker.start(cluster) if word.startswith("-o-S"))
    timeouts = {float(attributes[f"broker.{name}-timeout"].removesuffix("s")) for name in ("cleanup", "shutdown")}
    assert max(timeouts) <= max(2, rest / 2)


@pytest.mark.parametrize("grace", [30, 300])
def test_a_long_grace_period_keeps_the_default_timeouts_of_flux(grace: int) -> None:
    cluster = load({"metadata": {"name": "flux"}, "spec": {"pod": {"terminationGracePeriodSeconds": grace}}})
    assert model.grace(cluster)[1:] == (8, 7)
    assert "-o-Sbroker.cleanup-timeout=10s" in broker.start(cluster)
