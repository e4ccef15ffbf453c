"""The check of a node before its broker starts: real brokers."""

import json
import signal
from pathlib import Path

from agent_beside import agent_beside
from broker_clusters import Cluster, Make
from broker_pods import Flux

from tools.clients import until
from tools.releases import MOUNT

QUIET = {"logging": {"quiet": True}}
#: Fails on the node of index 1 until there is a file, and on each node where there is another one
CHECK = (
    'test ! -e /tmp/unfit || { echo "worn out"; false; }\n'
    'test "$JOB_COMPLETION_INDEX" != 1 || test -e /tmp/fit || { echo "no GPU"; false; }'
)
CHECKED = {"commands": {"nodeCheck": CHECK}}
REASON = "its check failed: no GPU"
SHORT = "FIRST_PAUSE_SECONDS=1 LONGEST_PAUSE_SECONDS=2"


def checked(make: Make, values: dict[str, object], command: str = "") -> Cluster:
    """Return a cluster with the check, and with short pauses."""
    cluster = make({**QUIET, **values}, {**CHECKED, "command": command})
    files = cluster.data["minicluster"]
    assert "FIRST_PAUSE_SECONDS=10 LONGEST_PAUSE_SECONDS=300" in files["check.sh"]
    files["check.sh"] = files["check.sh"].replace("FIRST_PAUSE_SECONDS=10 LONGEST_PAUSE_SECONDS=300", SHORT)
    return cluster


def drained(cluster: Cluster) -> dict[str, str]:
    """Return the reasons of the drained ranks, also of those that are not up; {} while the lead can't be asked."""
    done = cluster.lead.run(f"{MOUNT}/bin/flux", "python", f"{MOUNT}/minicluster/state.py")
    return dict(json.loads(done.stdout)["drained"]) if done.stdout else {}


def test_a_worker_whose_check_fails_is_no_node_until_it_succeeds(make: Make) -> None:
    cluster = checked(make, {"size": 3, "minSize": 2}).start()
    cluster.lead.wait_for_ready()
    until(lambda: drained(cluster) == {"1": REASON})
    assert cluster.up() == "0,2"
    assert cluster.lead.flux("run", "-N2", "echo", "on") == "on\non\n"
    # neither a probe nor a sidecar takes what told the lead for a broker
    assert cluster.pods[1].run("test", "-e", f"{MOUNT}/config/run/flux").returncode
    cluster.pods[1].run("touch", "/tmp/fit")
    until(lambda: cluster.up() == "0-2")
    assert drained(cluster) == {}
    assert cluster.lead.flux("run", "-N3", "true") == ""
    cluster.lead.shut_down("--quiet")
    assert cluster.wait() == [0, 0, 0]
    said = {"no GPU", *(f"minicluster: flux-sample-1: {REASON}; it runs again in {seconds} s" for seconds in (1, 2))}
    assert {*cluster.pods[1].log.splitlines()} <= said


def test_the_lead_knows_what_it_waits_for_before_its_quorum(make: Make) -> None:
    cluster = checked(make, {"size": 2}, "echo done").start()
    until(lambda: drained(cluster) == {"1": REASON})
    assert cluster.lead.process.poll() is None
    cluster.pods[1].run("touch", "/tmp/fit")
    assert cluster.wait() == [0, 0]
    assert cluster.lead.log == "done\n"


def test_a_worker_whose_broker_is_lost_is_checked_again(make: Make) -> None:
    cluster = checked(make, {"size": 3})
    cluster.start()
    until(lambda: drained(cluster) == {"1": REASON})
    cluster.pods[1].run("touch", "/tmp/fit")
    cluster.wait_for_ready()
    cluster.pods[2].run("touch", "/tmp/unfit")
    cluster.pods[2].kill_broker()
    until(lambda: drained(cluster) == {"2": "its check failed: worn out"})
    assert cluster.up() == "0-1"
    cluster.pods[2].run("rm", "/tmp/unfit")
    until(lambda: cluster.up() == "0-2")


def test_the_next_lead_is_told_too_and_a_node_that_a_person_drained_stays_drained(make: Make) -> None:
    cluster = checked(make, {"size": 2, "minSize": 1}).start()
    until(lambda: drained(cluster) == {"1": REASON})
    cluster.lead.signal(signal.SIGTERM)
    assert cluster.lead.wait() == 85
    cluster.start([0])
    until(lambda: drained(cluster) == {"1": REASON})
    cluster.lead.flux("resource", "drain", "--force", "1", "bad DIMM")
    cluster.pods[1].run("touch", "/tmp/fit")
    cluster.pods[1].wait_for_ready()
    until(lambda: cluster.lead.flux("resource", "list", "-n", "-s", "all", "-o", "{ranks}"))
    assert drained(cluster) == {"1": "bad DIMM"}
    assert cluster.up() == "0"


def test_a_lead_whose_check_fails_ends_with_a_code_of_its_own(make: Make) -> None:
    cluster = make(QUIET, {"command": "true", "commands": {"nodeCheck": "echo 'no GPU'; false"}})
    assert cluster.run() == [69]
    assert cluster.lead.log == f"no GPU\nminicluster: flux-sample-0: {REASON}\n"


def test_a_lead_that_comes_back_on_a_node_that_is_unfit_is_replaced(make: Make) -> None:
    cluster = checked(make, {"state": {"claimName": "shared"}}).start().wait_for_ready()
    cluster.lead.run("touch", "/tmp/unfit")
    cluster.lead.kill_broker()
    assert cluster.lead.wait() == 85
    *_, why, last = cluster.lead.log.splitlines()
    assert why == "minicluster: flux-sample-0: its check failed: worn out"
    assert last == "minicluster: the broker died, exit code 137: the Job replaces this pod"


def test_the_autoscaler_asks_for_another_node(make: Make, flux: Flux, tmp_path: Path) -> None:
    # an older Flux tells of no drain
    period = 3600 if flux.minor >= 72 else 1
    values = {"size": 1, "maxSize": 3, "autoscaling": {"enabled": True}, "agent": {"periodSeconds": period}}
    with agent_beside(checked(make, values), tmp_path / "agent.log") as mc:
        assert mc.ends(mc.submit("-N2", "true")) == "COMPLETED"
        assert mc.api.sizes == [1, 2, 3]
        assert drained(mc.cluster) == {"1": REASON}
