"""Pods that are stopped, killed, late or replaced: their exit codes, and which of them come back."""

import signal
import time

import pytest
from broker_clusters import Cluster, Make
from minicluster.flux import parse_idset

from tools.clients import until
from tools.releases import MOUNT

RETRY = 85
TWO = {"size": 2, "logging": {"quiet": True}}
#: A job that ends as soon as somebody makes the file /tmp/end in its pod.
UNTIL_TOLD = "until [ -e /tmp/end ]; do sleep 0.1; done; echo done"


def rejoins(cluster: Cluster, rank: int, seconds: float = 60) -> float:
    """Return after how many seconds a rank that was lost is up again."""
    begin = time.monotonic()
    until(lambda: rank in parse_idset(cluster.up()), seconds)
    print(f"rank {rank} is back after {time.monotonic() - begin:.1f} s")
    return time.monotonic() - begin


def lost(cluster: Cluster, rank: int) -> None:
    """Wait until the lead knows that a rank is gone."""
    until(lambda: rank not in parse_idset(cluster.up()))


def test_a_cluster_without_a_command_idles_until_shutdown(make: Make) -> None:
    cluster = make({"size": 3}).start().wait_for_ready()
    assert cluster.up() == "0-2"
    assert sorted(cluster.lead.flux("run", "-N3", "sh", "-c", "echo $FLUX_TASK_RANK").split()) == ["0", "1", "2"]
    assert cluster.pods[2].flux("run", "-N3", "-n3", "true") == ""
    assert [pod.process.poll() for pod in cluster.pods.values()] == [None] * 3
    cluster.lead.shut_down()
    assert cluster.wait() == [0, 0, 0]


def test_quiet_logging_of_an_idle_cluster_prints_nothing(make: Make) -> None:
    cluster = make({**TWO, "interactive": True}).start().wait_for_ready()
    cluster.lead.shut_down("--quiet")
    assert cluster.wait() == [0, 0]
    assert (cluster.lead.log, cluster.pods[1].log) == ("", "")


def test_a_shutdown_before_the_job_ends_fails_the_lead(make: Make) -> None:
    cluster = make(TWO, {"command": "sleep 600"}).start().wait_for_ready()
    cluster.lead.shut_down("--quiet")
    assert cluster.lead.wait() == 129
    said = "minicluster: the instance was shut down before its job ended\n"
    # `flux run` may be quick enough to see the end of its tasks
    assert cluster.lead.log in (said, f"flux-job: task(s) Hangup\n{said}")


def test_a_worker_that_is_told_to_stop_rejoins_and_the_work_goes_on(make: Make) -> None:
    cluster = make({**TWO, "size": 3}, {"command": UNTIL_TOLD}).start().wait_for_ready()
    cluster.pods[2].signal(signal.SIGTERM)
    assert cluster.pods[2].wait() == RETRY
    assert cluster.pods[2].log == ""
    lost(cluster, 2)
    cluster.start([2])
    rejoins(cluster, 2)
    assert cluster.lead.run("touch", "/tmp/end").returncode == 0
    assert cluster.wait() == [0, 0, 0]
    assert cluster.lead.log.splitlines()[-1] == "done"


def test_a_worker_without_a_lead_can_be_told_to_stop(make: Make) -> None:
    cluster = make(TWO, {"command": "true"})
    cluster.start([1])
    cluster.pods[1].signal(signal.SIGTERM)
    assert cluster.wait() == [RETRY]


@pytest.mark.parametrize("seconds", [0, 0.05, 0.3, 0.8, 1.5])
def test_a_lead_that_is_told_to_stop_while_it_starts_is_replaced(make: Make, seconds: float) -> None:
    cluster = make(TWO, {"command": "sleep 600"}).start()
    time.sleep(seconds)
    cluster.lead.signal(signal.SIGTERM)
    assert cluster.lead.wait() == RETRY


@pytest.mark.parametrize("command", ["sleep 600", ""])
def test_the_workers_rejoin_a_lead_that_was_told_to_stop_and_replaced(make: Make, command: str) -> None:
    cluster = make({**TWO, "size": 3}, {"command": command}).start().wait_for_ready()
    cluster.lead.signal(signal.SIGTERM)
    assert cluster.lead.wait() == RETRY
    cluster.start([0])
    begin = time.monotonic()
    until(lambda: cluster.up() == "0-2")
    print(f"all ranks are back after {time.monotonic() - begin:.1f} s")
    assert [cluster.pods[i].process.poll() for i in (1, 2)] == [None, None]


def test_the_work_starts_again_with_a_new_lead(make: Make) -> None:
    cluster = make(TWO, {"command": UNTIL_TOLD}).start().wait_for_ready()
    cluster.lead.signal(signal.SIGTERM)
    assert cluster.lead.wait() == RETRY
    cluster.start([0])
    until(lambda: cluster.lead.ready)
    cluster.lead.run("touch", "/tmp/end")
    assert cluster.wait() == [0, 0]
    assert cluster.lead.log == "done\n"


def has_seen_a_loss(cluster: Cluster) -> bool:
    """Tell whether the lead has noticed that a node went; from 0.72 on that is not in the KVS."""
    logs = (("resource", "eventlog"), ("kvs", "eventlog", "get", "resource.eventlog"))
    return any(" offline " in cluster.lead.run(f"{MOUNT}/bin/flux", *words).stdout for words in logs)


def test_a_worker_whose_broker_is_killed_rejoins_and_other_jobs_go_on(make: Make) -> None:
    cluster = make({**TWO, "size": 3}, {"command": UNTIL_TOLD}).start().wait_for_ready()
    cluster.pods[2].kill_broker()
    # it may be back before anybody has seen it missing
    until(lambda: has_seen_a_loss(cluster))
    assert rejoins(cluster, 2) < 30
    assert cluster.lead.flux("run", "-N1", "--requires=rank:2", "echo", "again") == "again\n"
    cluster.lead.run("touch", "/tmp/end")
    assert cluster.wait() == [0, 0, 0]
    assert cluster.lead.log.splitlines()[-1] == "done"
    again = "minicluster: the broker ended with exit code 137 and starts again"
    # at once if it ran for 2 s
    assert cluster.pods[2].log in (f"{again} in 1 s\n", f"{again}\n")


def test_the_jobs_of_a_killed_worker_fail(make: Make) -> None:
    cluster = make(TWO).start().wait_for_ready()
    job = cluster.lead.flux("submit", "--requires=rank:1", "sleep", "600").strip()
    cluster.lead.flux("job", "wait-event", "-t60", job, "start")
    cluster.pods[1].kill()
    assert cluster.lead.run(f"{MOUNT}/bin/flux", "job", "status", job).returncode != 0


def test_a_lead_whose_broker_is_killed_is_replaced_and_the_workers_rejoin(make: Make) -> None:
    cluster = make(TWO, {"command": "sleep 600"}).start().wait_for_ready()
    cluster.lead.kill_broker()
    assert cluster.lead.wait() == RETRY
    assert cluster.lead.log.endswith("minicluster: the broker died, exit code 137: the Job replaces this pod\n")
    cluster.start([0])
    until(lambda: cluster.up() == "0-1")


def test_the_workers_rejoin_the_replacement_of_a_killed_lead_pod(make: Make) -> None:
    cluster = make(TWO, {"command": "sleep 600"}).start().wait_for_ready()
    cluster.lead.kill()
    begin = time.monotonic()
    cluster.start([0])
    until(lambda: cluster.up() == "0-1")
    print(f"all ranks are back after {time.monotonic() - begin:.1f} s")
    assert cluster.pods[1].process.poll() is None


@pytest.mark.parametrize("code", [0, 3])
def test_a_finished_job_decides_the_exit_code_of_a_lead_that_is_told_to_stop(make: Make, code: int) -> None:
    commands = {"post": "touch /tmp/post; until [ -e /tmp/end ]; do sleep 0.1; done"}
    cluster = make(TWO, {"command": f"exit {code}", "commands": commands}).start()
    until(lambda: cluster.lead.run("test", "-e", "/tmp/post").returncode == 0)
    cluster.lead.signal(signal.SIGTERM)
    cluster.lead.run("touch", "/tmp/end")
    assert cluster.lead.wait() == code


def test_the_lead_waits_for_size_and_not_for_max_size_brokers(make: Make) -> None:
    cluster = make({**TWO, "maxSize": 4, "tasks": 2}, {"command": UNTIL_TOLD})
    cluster.start([0])
    until(lambda: cluster.up() == "0")
    assert not cluster.lead.ready
    cluster.start([1])
    cluster.wait_for_ready()
    for pod in cluster.pods.values():
        pod.run("touch", "/tmp/end")
    assert cluster.wait() == [0, 0]
    assert cluster.lead.log == "done\ndone\n"


def test_the_work_starts_with_min_size_brokers(make: Make) -> None:
    cluster = make({**TWO, "size": 3, "minSize": 1}, {"command": "flux resource list -n -s up -o {ranks}"})
    cluster.start([0])
    assert cluster.wait() == [0]
    assert cluster.lead.log == "0\n"


def test_a_late_worker_joins_the_instance(make: Make) -> None:
    cluster = make({**TWO, "maxSize": 3}).start().wait_for_ready()
    assert cluster.up() == "0-1"
    assert cluster.lead.flux("resource", "list", "-n", "-s", "down", "-o", "{nodelist}") == "flux-sample-2\n"
    cluster.start([2])
    rejoins(cluster, 2)
    assert (
        cluster.lead.flux("resource", "list", "-n", "-s", "free", "-o", "{nnodes} {nodelist}")
        == "3 flux-sample-[0-2]\n"
    )
    assert cluster.lead.flux("run", "-N3", "-n3", "true") == ""


def test_complete_workers_ends_a_worker_with_its_broker(make: Make) -> None:
    cluster = make({**TWO, "flux": {"completeWorkers": True}}).start().wait_for_ready()
    cluster.pods[1].kill_broker()
    assert cluster.pods[1].wait() == 0


def test_a_worker_waits_for_its_lead(make: Make) -> None:
    cluster = make(TWO, {"command": "echo hello"})
    cluster.start([1])
    time.sleep(3)
    assert cluster.pods[1].process.poll() is None
    cluster.start([0])
    assert cluster.wait() == [0, 0]
    assert cluster.lead.log == "hello\n"
