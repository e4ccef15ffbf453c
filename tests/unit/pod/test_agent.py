"""What the agent decides and does, with a fake Flux and a fake Kubernetes."""

import errno
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import metrics
import pytest
from fake_agent import POLICY, SETTINGS, Setup, said


def test_the_agent_grows_the_cluster_and_logs_that_once(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.flux.used = {0: (1, 0)}
    mc.flux.submit(1, nodes=2)
    mc.flux.submit(2)
    # until the end of the window only time counts; then any change does
    assert mc.at(0, 4, 10, 20, 30) == [(10, 10), (6, 6), *[(0, 10)] * 3]
    assert mc.flux.done == [("resize", 1, 4)]
    assert mc.kube.size == 4
    assert said(capsys) == [
        "size 1: waits: 2 jobs wait for nodes, for less than 10 s",
        "size 1 -> 4: 2 jobs wait for nodes",
        "size 4: nothing to do",
    ]
    assert mc.kube.events == ["Scaled: size 1 -> 4: 2 jobs wait for nodes"]
    assert mc.flux.lookups == [1, 2], "a jobspec is looked up once"


def test_the_backlog_window_starts_again_for_a_job_that_was_gone_or_held(mc: Setup) -> None:
    mc.flux.submit(1, nodes=3)
    mc.flux.submit(2, jobspec=None)
    mc.at(0)
    mc.flux.jobs[0]["priority"] = 0
    mc.at(5)
    mc.flux.jobs[0]["priority"] = 16
    mc.at(8, 12)
    assert mc.flux.done == []
    mc.at(18)
    assert mc.flux.done == [("resize", 1, 3)]


def test_the_agent_looks_at_the_job_that_its_settings_name(mc: Setup) -> None:
    mc.settings(name="a", namespace="b")
    mc.at(0)
    assert mc.where == [("https://api", "b", "a")]


def test_the_agent_does_not_count_nodes_of_bursts_for_its_size(mc: Setup) -> None:
    """Nodes of bursts are registered after the cluster's own, and jobs on them don't count for its size."""
    mc.flux.all = dict.fromkeys(range(10), (1, 0))
    mc.flux.online = set(range(10))
    mc.settings(max_size=4, policy={**POLICY, "max": 4})
    mc.kube.size = 3
    mc.flux.used = {0: (1, 0), 8: (1, 0)}
    mc.at(0, 60)
    assert mc.flux.done == [("drain", "1-2"), ("resize", 3, 1)]
    # a job that needs nodes of bursts too is a reason to grow once they have joined
    mc.flux.done.clear()
    mc.flux.submit(1, nodes=6)
    mc.flux.online = set(range(5))
    mc.at(70, 80, 90)
    assert (mc.flux.done, mc.kube.size) == ([], 1)
    mc.flux.online = set(range(6))
    mc.at(100)
    assert (mc.flux.done[-1], mc.kube.size) == (("resize", 1, 4), 4)


def test_the_agent_leaves_a_drained_node_of_a_burst_drained(mc: Setup) -> None:
    mc.flux.all = dict.fromkeys(range(10), (1, 0))
    mc.flux.drained = {9: "minicluster: b0 is scaling down"}
    mc.settings(max_size=8)
    mc.kube.size = 12  # set by hand
    mc.at(0)
    assert mc.flux.done == []


def test_the_agent_drains_nodes_before_it_shrinks_the_cluster(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.kube.size = 4
    mc.at(0, 60)
    assert mc.flux.done == [("drain", "1-3"), ("resize", 4, 1)]
    assert mc.flux.drained == dict.fromkeys((1, 2, 3), "minicluster: scaling down")
    assert said(capsys) == [
        "size 4: waits: nodes have been idle for less than 60 s",
        "size 4 -> 1: nodes idle for 60 s",
    ]
    # when they are needed again, they take jobs
    mc.flux.used = {0: (1, 0)}
    mc.flux.submit(1)
    mc.flux.done.clear()
    mc.at(70, 80, 90)
    assert mc.flux.done == [("resize", 1, 2), ("undrain", "1")]


def test_the_agent_does_not_undrain_what_somebody_else_drained(mc: Setup) -> None:
    mc.kube.size = 4
    mc.flux.drained = {1: "broken", 2: "minicluster: the pod was told to stop"}
    mc.kube.errors = {"resize": "no"}
    mc.at(0, 60)
    assert mc.flux.done == [("drain", "1-3"), ("resize", 4, 1), ("undrain", "3")]
    assert mc.flux.drained == {1: "broken", 2: "minicluster: the pod was told to stop"}


@pytest.mark.parametrize("reason", ["its check failed: no GPU", "its memory is short: 4 GiB of /dev/shm"])
def test_an_unfit_node_is_no_room_until_it_has_no_pod(mc: Setup, reason: str) -> None:
    mc.kube.size = 3
    mc.flux.online = {0, 1}
    mc.flux.used = {0: (1, 0)}
    mc.flux.drained = {2: reason, 7: reason}
    mc.flux.submit(1, nodes=2)
    mc.at(0, 10)
    assert mc.flux.done == [("undrain", "7"), ("resize", 3, 4)], "another one is asked for"
    mc.flux.done.clear()
    mc.kube.size = 2
    mc.at(20)
    assert mc.flux.done[0] == ("undrain", "2"), "the check of its next pod decides"


def test_a_size_set_by_hand_above_the_registered_hosts_is_reduced(mc: Setup) -> None:
    mc.kube.size = 12
    mc.at(0, 60)
    assert mc.flux.done == [("drain", "1-7"), ("resize", 12, 1)]


def test_a_node_stays_when_a_job_started_on_it_before_the_drain(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.kube.size = 3
    mc.at(0)
    drain = mc.flux.resource_drain

    def start_and_drain(payload: Any, nodeid: int | None) -> None:
        mc.flux.used = {2: (1, 0)}
        drain(payload, nodeid)

    mc.flux.resource_drain = start_and_drain  # type: ignore[method-assign]
    mc.at(60)
    assert mc.flux.done == [("drain", "1-2"), ("undrain", "1,2")]
    assert (mc.kube.size, mc.flux.drained, mc.kube.events) == (3, {}, [])
    assert said(capsys)[-1] == "size 3: a job started on a node that was about to go"


def test_a_failed_resize_leaves_no_node_drained(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.kube.size = 3
    mc.kube.errors = {"resize": "PATCH: 409 the object has been modified"}
    mc.at(0, 60)
    assert mc.flux.done == [("drain", "1-2"), ("resize", 3, 1), ("undrain", "1,2")]
    assert mc.flux.drained == {}
    assert said(capsys)[-1] == "the size can't be read or changed now: PATCH: 409 the object has been modified"
    mc.kube.errors = {}
    mc.at(70)
    assert mc.kube.size == 1


def test_the_agent_goes_on_while_the_api_server_is_away(
    mc: Setup, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: 130.0)
    mc.settings(port=8051, size=3)
    mc.flux.used = {0: (1, 0)}
    mc.flux.submit(1)
    mc.at(0)
    mc.kube.errors = {"get": "GET: Connection refused"}
    # it asks more and more seldom
    assert mc.at(10, 11, 13, 17, 25, 35) == [(s, s) for s in (1, 2, 4, 8, 10, 10)]
    assert len(mc.shown) == 7, "metrics are served all the same"
    assert mc.shown[-1] == mc.shown[0], "with the size that was seen last"
    mc.kube.errors = {}
    assert mc.at(45) == [(0, 10)]
    assert mc.kube.size == 2
    mc.kube.errors = {"get": "GET: Connection refused"}
    assert mc.at(55) == [(1, 1)]
    assert said(capsys) == [
        "size 1: waits: 1 job waits for nodes, for less than 10 s",
        "the size can't be read or changed now: GET: Connection refused",
        "size 1 -> 2: 1 job waits for nodes",
        "the size can't be read or changed now: GET: Connection refused",
    ]


def test_the_agent_goes_on_when_an_event_can_not_be_recorded(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.kube.errors = {"event": "POST: 403 forbidden"}
    mc.kube.size = 2
    mc.at(0, 60)
    assert mc.kube.size == 1
    assert said(capsys)[-2:] == ["size 2 -> 1: nodes idle for 60 s", "the event was not recorded: POST: 403 forbidden"]


def test_the_agent_grows_the_cluster_by_cpu_use_when_there_is_a_target(
    mc: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    mc.settings(policy={**POLICY, "cpu_target": 50})
    mc.kube.size, mc.kube.use = 2, 4.0  # of twice 2 cores
    mc.at(0, 10)
    assert mc.kube.size == 4
    assert said(capsys)[-1] == "size 2 -> 4: CPU use is 100% of the request"


def test_unknown_cpu_use_is_logged_once_and_the_queue_counts(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.settings(policy={**POLICY, "cpu_target": 50})
    mc.kube.errors = {"cpu": "GET: 404 not found"}
    mc.at(0, 10, 20)
    assert said(capsys) == ["CPU use can't be read: GET: 404 not found", "size 1: nothing to do"]
    mc.kube.errors, mc.kube.use = {}, 1.0
    mc.at(30)
    mc.kube.errors = {"cpu": "GET: 404 not found"}
    mc.flux.used = {0: (1, 0)}
    mc.flux.submit(1)
    mc.at(40, 50)
    assert said(capsys)[0] == "CPU use can't be read: GET: 404 not found", "a new time, it is news"
    assert mc.kube.size == 2


def test_the_agent_keeps_a_requested_size_until_it_is_withdrawn(mc: Setup) -> None:
    mc.flux.kvs["minicluster.size"] = 5
    mc.at(0, 10)
    assert mc.kube.size == 5
    mc.at(20, 80, 140)
    assert mc.kube.size == 5
    mc.flux.kvs["minicluster.size"] = 0
    mc.at(150, 210)
    assert mc.kube.size == 1


def test_the_agent_follows_the_replicas_and_writes_the_size_into_them(
    mc: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    mc.settings(policy={**POLICY, "handle": True})
    mc.at(0)
    mc.kube.replicas = 4
    mc.at(10, 20)
    assert mc.kube.size == 4
    assert said(capsys)[-2:] == [
        "size 1: waits: 4 nodes were requested, for less than 10 s",
        "size 1 -> 4: 4 nodes were requested",
    ]
    # the queue needs more
    mc.flux.used = dict.fromkeys(range(4), (1, 0))
    mc.flux.submit(1, nodes=6)
    mc.at(30, 40, 50)
    assert (mc.kube.size, mc.kube.replicas) == (6, 6)
    # a smaller request ends no job
    mc.kube.replicas = 2
    mc.flux.used, mc.flux.jobs = dict.fromkeys(range(6), (1, 0)), []
    mc.at(60, 120, 180)
    assert (mc.kube.size, mc.kube.replicas) == (6, 2)
    mc.flux.used = {}
    mc.at(190, 250, 260)
    assert (mc.kube.size, mc.kube.replicas) == (2, 2)


def test_the_agent_scales_by_the_queue_while_the_replicas_can_not_be_read(
    mc: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    mc.settings(policy={**POLICY, "handle": True})
    mc.kube.errors = {"deployment": "GET: 404 not found"}
    mc.flux.used = {0: (1, 0)}
    mc.flux.submit(1)
    mc.at(0, 10, 20)
    assert mc.kube.size == 2
    failures = [line for line in said(capsys) if "replicas" in line]
    assert failures == ["the Deployment's replicas can't be read or changed: GET: 404 not found"]


def test_the_agent_leaves_the_deployment_alone_without_a_handle(mc: Setup) -> None:
    mc.kube.replicas = 5
    mc.at(0, 10, 20)
    assert (mc.kube.size, mc.kube.replicas) == (1, 5)


@pytest.mark.parametrize("value", [None, "many", [3]], ids=str)
def test_the_agent_ignores_an_invalid_requested_size(mc: Setup, value: Any) -> None:
    mc.flux.kvs["minicluster.size"] = value
    mc.at(0, 10)
    assert mc.kube.size == 1


def test_the_agent_asks_kubernetes_once_a_period_and_before_it_acts(
    mc: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    mc.flux.used = {0: (1, 0)}
    assert mc.at(0, 3, 9) == [(0, 10), (0, 7), (0, 1)]
    assert mc.kube.asked == 1
    mc.kube.size = 3  # set by hand, not seen yet
    mc.flux.submit(1)
    assert mc.at(9.5, 10) == [(10, 0.5), (0, 10)]
    assert mc.kube.asked == 2
    mc.flux.used = dict.fromkeys(range(3), (1, 0))
    mc.flux.jobs.clear()
    mc.flux.submit(2)
    mc.kube.size = 5  # there is room on these nodes
    mc.at(11, 19)
    assert mc.kube.asked == 2
    mc.agent.scaler.expires = 100
    mc.at(21)
    assert mc.kube.asked == 3
    assert mc.flux.done == []
    assert said(capsys) == ["size 1: nothing to do", "size 3: nothing to do"]


def test_the_agent_logs_what_it_waits_for_once_a_period(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.at(0)
    mc.flux.used = {0: (1, 0)}
    mc.flux.submit(1)
    mc.at(1, 2, 9)
    assert said(capsys) == ["size 1: nothing to do"]
    mc.at(10)
    assert said(capsys) == ["size 1: waits: 1 job waits for nodes, for less than 10 s"]


def test_the_agent_takes_at_most_one_step_in_a_period(mc: Setup) -> None:
    mc.settings(policy={**POLICY, "step_up": 2})
    mc.flux.used = {0: (1, 0)}
    for number in range(9):
        mc.flux.submit(number)
    assert mc.at(0, 10) == [(10, 10), (0, 10)]
    assert mc.kube.size == 3
    assert mc.at(11) == [(9, 9)]
    assert mc.kube.size == 3
    mc.at(20)
    assert mc.kube.size == 5


def test_cpu_use_is_read_once_a_period_and_shared_by_all_nodes(mc: Setup) -> None:
    mc.settings(policy={**POLICY, "cpu_target": 50, "backlog": 1})
    mc.kube.size, mc.kube.use = 2, 4.0  # of twice 2 cores
    mc.at(0, 1)
    assert mc.kube.size == 4
    mc.kube.use = 100.0
    mc.at(2, 3, 4)
    assert mc.kube.size == 4
    mc.at(10, 11)
    assert mc.kube.size == 8


def test_the_agent_reads_its_settings_at_each_look(mc: Setup) -> None:
    mc.flux.used = {0: (1, 0)}
    for number in range(9):
        mc.flux.submit(number)
    mc.settings(policy={**POLICY, "max": 3})
    mc.at(0, 10, 20, 30)
    assert mc.kube.size == 3
    mc.settings(period=2)
    # the agent sees only now that the other jobs wait too
    assert mc.at(40) == [(2, 2)]
    mc.at(50)
    assert mc.kube.size == 8


def test_the_agent_ignores_settings_of_a_newer_version(mc: Setup) -> None:
    mc.settings(policy={**POLICY, "novelty": 1}, novelty=2)
    mc.at(0)
    assert mc.agent.scaler.own.snapshot is not None


def test_the_agent_without_a_policy_asks_nothing_of_kubernetes(mc: Setup) -> None:
    mc.settings(policy=None)
    mc.kube.errors = dict.fromkeys(("get", "resize", "event", "cpu"), "must not be asked")
    mc.flux.submit(1, nodes=4)
    assert mc.at(0, 100) == [(10, 10)] * 2
    assert (mc.flux.done, mc.shown) == ([], [])


def test_the_agent_serves_metrics_of_the_cluster_and_the_autoscaler(mc: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 130.0)
    mc.settings(port=9100)
    mc.flux.submit(1)
    mc.kube.size = 2
    mc.at(0)
    [(port, text)] = mc.shown
    assert port == 9100
    lines = text.splitlines()
    for line in (
        "minicluster_size 2",
        "minicluster_max_size 8",
        'minicluster_jobs{state="sched"} 1',
        "minicluster_queue_wait_seconds 30",
        'minicluster_autoscaler_wish{reason="queue"} 2',
        'minicluster_autoscaler_wish{reason="min"} 1',
    ):
        assert line in lines
    mc.settings(policy=None, port=9100, size=3)
    mc.at(10)
    assert "minicluster_size 3" in mc.shown[1][1].splitlines()
    assert "autoscaler" not in mc.shown[1][1]
    monkeypatch.setattr(metrics.MetricsServer, "clear", lambda _: mc.shown.append((0, "")))
    mc.settings(port=None)
    mc.at(20)
    assert mc.shown[2:] == [(0, "")]


def test_the_agent_ends_with_the_broker_but_not_when_a_module_is_missing(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    looks = iter([(0.0, 10.0), OSError(errno.ENOSYS, "No service matching"), OSError(errno.EPIPE, "Broken pipe")])
    waits = []

    def look(*_: Any) -> tuple[float, float]:
        found = next(looks)
        if isinstance(found, OSError):
            raise found
        return found

    monkeypatch.setattr(program.Agent, "look", look)
    monkeypatch.setattr(program.Changes, "wait", lambda _, least, most: waits.append((least, round(most, 1))))
    (tmp_path / "agent.json").write_text(json.dumps(SETTINGS))
    monkeypatch.setattr(sys, "argv", ["agent.py", str(tmp_path / "agent.json")])
    monkeypatch.setattr("time.process_time", iter([0.0, 0.1, 1.0, 1.001, 2.0]).__next__)
    monkeypatch.setattr("time.monotonic", iter([0.0, 3.0, 20.0, 22.0, 30.0]).__next__)
    with pytest.raises(SystemExit, match="75"):
        program.main()
    # a look with 0.1 s of CPU is followed by 2 s without one; the period counts from its begin
    assert waits == [(2.0, 7.0), (1.0, 0.1)]
    ends = "Flux can't be asked: [Errno 32] Broken pipe"
    assert said(capsys) == ["Flux can't be asked now: [Errno 38] No service matching", ends]


def test_the_agent_listens_to_starts_of_jobs_only_to_hold_their_pods(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names: list[list[str]] = []

    def end(_: Any, changes: Any) -> None:
        names.append(sorted(changes.topics))

    monkeypatch.setattr(program, "work", end)
    monkeypatch.setattr(sys, "argv", ["agent.py", str(tmp_path / "agent.json")])
    for budget in (None, HELD):
        (tmp_path / "agent.json").write_text(json.dumps({**SETTINGS, "budget": budget}))
        program.main()
    assert names == [["jobs", "nodes", "size"], ["jobs", "nodes", "size", "starts"]]


# Busy pods ---------------------------------------------------------------------------------------------------

HELD = {"always_lead": True}


def test_the_agent_holds_the_lead_and_busy_pods_without_an_autoscaler(mc: Setup) -> None:
    mc.settings(policy=None, budget=HELD)
    mc.kube.errors = dict.fromkeys(("get", "resize", "event", "cpu"), "must not be asked")
    assert mc.at(0) == [(0, 10)]
    assert mc.kube.held == ["0"]
    # a start of a job wakes the agent
    mc.flux.run(1, "2")
    assert mc.at(3) == [(0, 7)]
    assert mc.kube.held == ["0", "2"]
    mc.flux.end(1)
    mc.at(4)
    assert (mc.kube.held, mc.kube.asked) == (["0", "2"], 2), "until the end of the period"
    mc.at(10)
    assert mc.kube.held == ["0"]
    # nothing of the queue is asked but the nodes
    assert mc.flux.done == []


def test_the_agent_does_not_hold_hosts_of_bursts(mc: Setup) -> None:
    mc.settings(policy=None, budget=HELD, max_size=4)
    mc.flux.run(1, "3-5")
    mc.at(0)
    assert mc.kube.held == ["0", "3"]


@pytest.mark.parametrize("state", ["depend", "priority", "sched", "run", "cleanup"])
def test_the_lead_of_a_kept_queue_may_go_while_there_is_no_job(mc: Setup, state: str) -> None:
    mc.settings(policy=None, budget={"always_lead": False})
    mc.at(0)
    assert mc.kube.held is None
    mc.flux.submit(1, state=state)
    mc.at(1)
    assert mc.kube.held == ["0"]
    mc.flux.end(1)
    mc.at(10)
    assert mc.kube.held is None


def test_the_agent_scales_and_holds_pods(mc: Setup) -> None:
    mc.settings(budget=HELD)
    mc.flux.used = {0: (1, 0)}
    mc.flux.submit(1)
    # a window is open, but the next start of a job counts at once
    assert mc.at(0) == [(0, 10)]
    mc.at(10)
    mc.flux.jobs.clear()
    mc.flux.run(1, "1")
    mc.at(11)
    assert (mc.kube.size, mc.kube.held) == (2, ["0", "1"])


def test_pods_are_held_while_the_size_can_not_be_read(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.settings(budget=HELD)
    mc.kube.errors = {"get": "GET: 403 forbidden"}
    assert mc.at(0) == [(0, 1)]
    mc.flux.run(1, "2")
    # a start of a job does not ask for the size sooner
    assert mc.at(0.25) == [(0, 0.75)]
    assert mc.kube.held == ["0", "2"]
    assert mc.kube.asked == 3
    assert said(capsys) == ["the size can't be read or changed now: GET: 403 forbidden"]


def test_the_agent_scales_while_pods_can_not_be_held_and_says_so_once(
    mc: Setup, capsys: pytest.CaptureFixture[str]
) -> None:
    mc.settings(budget=HELD, port=8051)
    mc.kube.errors = {"budget": "GET: 404 not found"}
    mc.flux.used = {0: (1, 0)}
    mc.flux.submit(1)
    # it asks more and more seldom
    assert [most for _, most in mc.at(0, 1, 3, 7, 15, 25)] == [1, 2, 4, 3, 10, 10]
    assert (mc.kube.size, len(mc.shown)) == (2, 6)
    mc.kube.errors = {}
    mc.at(35)
    assert mc.kube.held == ["0"]
    mc.kube.errors = {"budget": "GET: 404 not found"}
    mc.at(45)
    failures = [line for line in said(capsys) if "Budget" in line]
    assert failures == ["the PodDisruptionBudget can't be read or changed now: GET: 404 not found"] * 2


# Scale to zero -----------------------------------------------------------------------------------------------

SLEEPS = {**POLICY, "suspend": 30}
WHY = {"minicluster/suspended": "idle for 30 s"}
ALL = dict.fromkeys(range(2), "minicluster: scaling down")


def test_the_agent_suspends_an_idle_cluster(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.settings(policy=SLEEPS, period=12)
    mc.kube.size = 2
    # the agent looks at the end of the window, between two periods
    assert mc.at(0, 10, 24, 29) == [(0, 12), (0, 2), (0, 6), (0, 1)]
    assert (mc.flux.done, mc.kube.asked) == ([], 2)
    mc.at(30)
    # no job can start on nodes that go, although the brokers of their pods live on for a while
    assert mc.flux.done == [("drain", "0-1"), "suspend"]
    assert mc.flux.drained == ALL
    # it wakes with its least size
    assert (mc.kube.suspended, mc.kube.annotations, mc.kube.size) == (True, WHY, 1)
    assert mc.kube.events == ["Idle: suspended: idle for 30 s"]
    assert said(capsys)[-1] == "suspended: idle for 30 s"
    # once
    assert mc.at(31, 42, 90) == [(0, 11), (0, 12), (0, 12)]
    assert mc.flux.done == [("drain", "0-1"), "suspend"]


def test_the_agent_asks_kubernetes_before_it_suspends_the_cluster(mc: Setup) -> None:
    mc.settings(policy=SLEEPS, period=1000)
    mc.at(0)
    mc.kube.suspended = True  # by a person
    mc.at(30, 60)
    assert (mc.flux.done, mc.kube.annotations) == ([], {})


@pytest.mark.parametrize("policy", [POLICY, {**POLICY, "suspend": 0}], ids=["unset", "0"])
def test_the_agent_suspends_no_cluster_without_a_policy_to_suspend(mc: Setup, policy: dict[str, Any]) -> None:
    mc.settings(policy=policy)
    mc.flux.errors["job-manager.stats-get"] = OSError(errno.ENOSYS, "not asked")
    mc.at(0, 1000)
    assert mc.flux.done == []


@pytest.mark.parametrize("state", ["depend", "priority", "sched", "run", "cleanup"])
def test_a_job_of_the_last_moment_prevents_the_suspension(mc: Setup, state: str) -> None:
    mc.settings(policy=SLEEPS)
    mc.at(0)
    drain = mc.flux.resource_drain

    def submit_and_drain(payload: Any, nodeid: int | None) -> None:
        mc.flux.submit(1, state=state)
        drain(payload, nodeid)

    mc.flux.resource_drain = submit_and_drain  # type: ignore[method-assign]
    mc.at(30)
    assert mc.flux.done == [("drain", "0"), ("undrain", "0")]
    assert (mc.kube.suspended, mc.flux.drained, mc.kube.events) == (False, {}, [])
    mc.at(40)
    mc.flux.resource_drain = drain  # type: ignore[method-assign]
    mc.flux.end(1)
    mc.at(50, 79)
    assert not mc.kube.suspended, "a new window"
    mc.at(80)
    assert mc.kube.suspended


def test_a_failed_suspension_leaves_no_node_drained(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.settings(policy=SLEEPS)
    mc.kube.errors = {"suspend": "PATCH: 409 the object has been modified"}
    assert mc.at(0, 30) == [(0, 10), (1, 1)]
    assert mc.flux.done == [("drain", "0"), "suspend", ("undrain", "0")]
    assert mc.flux.drained == {}
    assert said(capsys)[-1] == "the size can't be read or changed now: PATCH: 409 the object has been modified"
    mc.kube.errors = {}
    mc.at(31)
    assert mc.kube.suspended


def test_the_agent_drains_nodes_of_bursts_before_it_suspends_the_cluster(mc: Setup) -> None:
    """The jobs on hosts of bursts, the ranks from `max_size` on, end with the lead."""
    mc.settings(policy=SLEEPS, period=12, max_size=6)
    mc.kube.errors = {"suspend": "PATCH: 409 the object has been modified"}
    mc.flux.drained = {3: "minicluster: scaling down", 7: "disk"}
    mc.at(0, 24, 30)
    assert mc.flux.done == [("drain", "0,6-7"), "suspend", ("undrain", "0,6")]
    mc.kube.errors = {}
    mc.at(31)
    assert mc.flux.done[3:] == [("drain", "0,6-7"), "suspend"]
    mc.kube.suspended = False  # a person resumed it at once, and the pods are still there
    mc.at(45)
    assert mc.flux.drained == {3: "minicluster: scaling down", 7: "disk"}


def test_a_job_that_comes_while_the_pods_end_wakes_the_cluster(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.settings(policy=SLEEPS, period=12)
    mc.at(0, 24, 30)
    mc.flux.submit(1)
    mc.kube.errors = {"resume": "PATCH: 409 the object has been modified"}
    mc.at(31)
    assert mc.flux.done[-3:] == ["resume"] * 3, "the Job's controller writes to it at the same time"
    mc.kube.errors = {}
    mc.at(32)
    assert (mc.kube.suspended, mc.kube.annotations) == (False, {})
    assert mc.kube.events[-1] == "Woken: resumed: a job came while the pods ended"
    assert said(capsys)[-1] == "resumed: a job came while the pods ended"
    # the pods end though, so the job waits for the next ones
    mc.flux.done.clear()
    mc.at(33, 41)
    assert mc.flux.done == []
    assert mc.flux.drained == {0: "minicluster: scaling down"}
    # unless these pods are still there
    mc.at(42)
    assert mc.flux.done == [("undrain", "0")]


def test_the_agent_does_not_resume_a_cluster_that_a_person_suspended(mc: Setup) -> None:
    mc.settings(policy=SLEEPS)
    mc.at(0, 30)
    mc.kube.annotations = {"minicluster/suspended": "the value suspend"}
    mc.flux.submit(1)
    mc.at(31)
    assert mc.kube.suspended
    assert "resume" not in mc.flux.done


def test_the_agent_removes_its_annotation_when_somebody_resumed_the_job(mc: Setup) -> None:
    mc.kube.annotations = dict(WHY)
    mc.at(0)
    assert (mc.kube.annotations, mc.flux.done) == ({}, ["resume"])


# The quota of Kueue ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quota", range(1, 9))
def test_the_agent_shrinks_the_cluster_to_what_kueue_admits(
    mc: Setup, quota: int, capsys: pytest.CaptureFixture[str]
) -> None:
    mc.kube.quota = quota
    mc.flux.online = {0}
    for number in range(6):
        mc.flux.submit(number)
    mc.at(*range(0, 250, 10))
    assert mc.kube.size == min(quota, 6)
    if quota == 3:
        assert [line for line in said(capsys) if "quota" in line] == [
            "size 6 -> 3: Kueue has no quota for 5 of its pods",
            "size 5 -> 4: Kueue has no quota for 2 of its pods",
            "size 4 -> 3: Kueue has no quota for 1 of its pods",
        ]
    # more is tried again
    mc.kube.quota = 8
    mc.at(*range(250, 600, 10))
    assert mc.kube.size == 6


def test_the_agent_keeps_the_size_while_kueue_is_about_to_admit_pods(mc: Setup) -> None:
    mc.kube.quota = 8
    mc.flux.online = {0}
    mc.flux.submit(1, nodes=6)
    mc.at(0, 10)
    mc.kube.quota = 1
    mc.at(20, 30)
    mc.kube.quota = 8
    mc.at(40, 50, 60)
    assert mc.flux.done == [("resize", 1, 6)]


def test_an_agent_that_may_not_count_pods_says_so_once(mc: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    mc.kube.quota = 1
    mc.kube.errors["pods"] = "GET …: 403 forbidden"
    mc.at(0, 10, 20)
    assert [line for line in said(capsys) if "Kueue" in line] == [
        "pods in Kueue's queue can't be counted: GET …: 403 forbidden"
    ]


def test_what_the_agent_can_not_do_is_told_to_status_until_it_can(mc: Setup) -> None:
    problems = mc.file.with_name("agent.problem")
    problems.write_text("of an earlier agent\n")
    mc.kube.errors = {"get": "GET: 403 forbidden"}
    mc.at(0)
    assert problems.read_text() == "the size can't be read or changed now: GET: 403 forbidden\n"
    mc.kube.errors = {}
    mc.at(1)
    assert problems.read_text() == ""


def test_each_thing_that_the_agent_can_not_do_is_a_problem_of_one_line(
    mc: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_: object) -> None:
        raise OSError("Address already in use")

    monkeypatch.setattr(metrics.MetricsServer, "serve", taken)
    mc.settings(policy={**POLICY, "cpu_target": 50}, port=8051, budget={"always_lead": True})
    mc.kube.errors = {"cpu": "GET: 404\nnot found", "budget": "GET: 403 forbidden"}
    mc.at(0)
    assert mc.file.with_name("agent.problem").read_text().splitlines() == [
        "the PodDisruptionBudget can't be read or changed now: GET: 403 forbidden",
        "CPU use can't be read: GET: 404 not found",
        "metrics.port 8051 can't be served: Address already in use",
    ]
