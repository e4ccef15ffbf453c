"""A MiniCluster over time: jobs, nodes, marks and samples, from what is told; and only so much of the past."""

import json
from typing import Any

import pytest
from minicluster.picture.feed import Reader
from minicluster.picture.job_history import Lanes, Sample, curve, result_of, steps_of, thinned
from minicluster.picture.timeline import Timeline
from minicluster.picture.use_history import USE_JOBS, USE_RECORDS
from picture_lead import START, job, past
from status_samples import IDLE, show


def test_jobs_that_share_a_node_have_lanes_of_their_own() -> None:
    lanes = Lanes()
    assert lanes.take([0, 1], 1.0, None) == [0, 0]
    assert lanes.take([0], 2.0, 4.0) == [1]
    assert lanes.take([0], 3.0, None) == [2]
    lanes.free([0, 1], [0, 0], 5.0)
    assert lanes.take([0], 4.5, None) == [1]
    assert lanes.take([0, 1], 5.0, None) == [0, 0]
    assert (lanes.count(0), lanes.count(1), lanes.count(7)) == (3, 1, 1)


def test_the_queue_over_time_follows_from_the_times_of_jobs() -> None:
    rows = [
        job(1, t_submit=10.0, t_run=12.0, t_cleanup=20.0, ncores=4),
        job(2, t_submit=11.0, t_run=15.0, t_cleanup=None, t_inactive=None, ncores=None, ntasks=2),
        job(3, t_submit=11.0, t_run=None, t_cleanup=None, t_inactive=18.0),
    ]
    found = curve(step for row in rows for step in steps_of(row))
    assert [sample[:4] for sample in found] == [
        (10.0, 1, 0, 0),
        (11.0, 3, 0, 0),
        (12.0, 2, 1, 4),
        (15.0, 1, 2, 6),
        (18.0, 0, 2, 6),
        (20.0, 0, 1, 2),
    ]


@pytest.mark.parametrize("state", ["", "Running", "Suspended", "Unknown", "Complete", "Failed", "Gone"])
def test_the_clock_stands_still_where_nothing_more_happens(state: str) -> None:
    timeline = Timeline("mini")
    timeline.take_past([job(1), job(2, t_cleanup=None, t_inactive=None, state="RUN")], START + 100)
    timeline.take_status({"state": state})
    is_over = state in ("Complete", "Failed", "Gone")
    assert (timeline.is_over, timeline.clock(START + 9e6)) == (is_over, START + (63 if is_over else 9e6))
    timeline.is_record = True
    assert timeline.clock(START + 9e6) == START + 63
    assert Timeline("none").clock(7.0) == 7.0


def test_times_are_by_the_clock_of_the_lead_and_the_figures_have_theirs() -> None:
    timeline = Timeline("mini")
    ours = START - 3600
    reader = Reader(timeline)
    for told in past([job(1, state="SCHED", result=None, t_run=None, t_cleanup=None, t_inactive=None)]):
        reader.take(told, ours)
    timeline.take_status(show(*IDLE))
    shown = timeline.snapshot(ours + 10)
    assert shown["now"] == START + 10
    assert ["Figures", "of 12:00:00 UTC", ""] in [[*row] for row in shown["rows"]]
    assert [row[1] for row in shown["rows"] if row[0] == "Oldest"] == ["job f1 (work) for 11s"]


def test_jobs_inside_of_others_are_shown_and_have_no_bar_and_no_part_in_the_queue() -> None:
    timeline = Timeline("mini", most=2)
    runs = {"state": "RUN", "result": None, "t_cleanup": None, "t_inactive": None}

    def inside(number: int, **fields: Any) -> dict[str, Any]:
        return {**job(0, **fields), "id": f"f1/f{number}", "number": None, "ranks": "7"}

    timeline.take_past([inside(2), job(1, **runs), inside(3, **runs)], START)
    timeline.changes(START)
    shown = {row["number"]: (row["status"], row["ranks"], row["lanes"]) for row in timeline.snapshot(START)["jobs"]}
    assert shown == {"1": ("RUNNING", "0-1", [0, 0]), "f1/f2": ("COMPLETED", "", []), "f1/f3": ("RUNNING", "", [])}
    assert timeline.samples[-1].running == 1
    timeline.take_jobs([inside(3), inside(4)])
    changes = timeline.changes(START)
    assert changes is not None
    assert ([row["number"] for row in changes["jobs"]], changes["gone"]) == (["f1/f3", "f1/f4"], ["f1/f2"])


def told_use(rank: int, t: float, **cpu_of: float) -> dict[str, Any]:
    """Return what a node tells that its jobs use: 3 GiB each, of 8."""
    memory = {"memory": 3 << 30, "memory_limit": 8 << 30}
    return {str(rank): {"time": t, "jobs": {name[1:]: {"cpu_seconds": cpu, **memory} for name, cpu in cpu_of.items()}}}


def test_what_jobs_use_is_told_by_node_and_by_job_beside_what_they_have() -> None:
    timeline = Timeline("mini")
    runs = {"state": "RUN", "result": None, "t_cleanup": None, "t_inactive": None}
    timeline.take_past([job(1, **runs), job(2, **runs, ranks="1", ncores=1)], START)
    timeline.take_nodes([{"t": START, "event": "online", "ranks": "0-1"}], ["mini-[0-1]"], {"0-1": 4})
    timeline.take_use({**told_use(0, START + 10, _1=15.0), **told_use(1, START + 10, _1=5.0, _2=1.0)}, START + 10)
    use = timeline.snapshot(START + 10)["use"]
    assert {name: series["points"] for name, series in use.items()} == {
        "all": [(START + 10, 2.1, 9216, 5.0, 16384)],
        "node 0": [(START + 10, 1.5, 3072, 2.0, 8192)],
        "node 1": [(START + 10, 0.6, 6144, 3.0, 8192)],
        "job 1": [(START + 10, 2.0, 6144, 4.0, 16384)],
        "job 2": [(START + 10, 0.1, 3072, 1.0, 8192)],
    }
    assert [node["cores"] for node in timeline.snapshot(START)["nodes"][:2]] == [4, 4]
    timeline.changes(START + 10)
    # a node that has not looked again says what is known, one whose file is broken nothing
    broken = {"1": {"time": "x", "jobs": {"1": {"cpu_seconds": float("nan")}}}, "x": {}}
    timeline.take_use({**told_use(0, START + 10, _1=15.0), **broken}, START + 15)
    timeline.take_jobs([job(1), job(2, ranks="1")])
    timeline.take_use({}, START + 20)
    changes = timeline.changes(START + 20)
    assert changes
    assert changes["use"]["node 0"] == {
        "keep": 1,
        "points": [(START + 15, 1.5, 3072, 2.0, 8192), (START + 20, 0.0, 0, 0, 8192)],
    }
    assert changes["use"]["job 1"] == {"keep": 1, "points": [(START + 15, 2.0, 6144, 4.0, 16384)]}
    # what stays the same takes no room
    for t in range(25, 50, 5):
        timeline.take_use({}, START + t)
    last = {"keep": 3, "points": [(START + 45, 0.0, 0, 0, 8192)]}
    assert timeline.use.changes()["node 0"] == last


def test_the_cores_of_a_job_are_those_since_the_look_before() -> None:
    timeline = Timeline("mini")
    timeline.take_past([job(1, state="RUN", result=None, t_cleanup=None, t_inactive=None, ranks="0")], START)
    for t, cpu in ((10, 15.0), (20, 20.0), (30, 19.0)):
        timeline.take_use(told_use(0, START + t, _1=cpu), START + t)
    # a process that nobody waits for takes its time with it
    assert [point.cores for point in timeline.use.series["job 1"]] == [1.5, 0.5, 0.0]


def test_use_is_kept_of_so_many_jobs_and_its_past_is_coarser() -> None:
    timeline = Timeline("mini")
    for number in range(1, USE_JOBS + 3):
        runs = job(number, state="RUN", result=None, t_cleanup=None, t_inactive=None, ranks="0")
        timeline.take_past([runs], START)
        timeline.take_use(told_use(0, START + number, **{f"_{number}": number % 7}), START + number)
        timeline.take_jobs([job(number, ranks="0")])
    use = timeline.use.changes()
    assert (len(use), use["job 1"]) == (USE_JOBS + 2 + 2, {"keep": 0, "points": []})
    points = timeline.use.series["node 0"]
    assert USE_RECORDS / 2 < len(points) <= USE_RECORDS
    assert [point.t for point in points] == sorted({point.t for point in points})
    assert (points[-1].t, use["node 0"]["keep"]) == (START + USE_JOBS + 2, 0)


def test_an_undrain_of_a_node_that_is_gone_is_no_news() -> None:
    timeline = Timeline("mini")
    events = [("online", "0-3"), ("drain", "2"), ("drain", "3"), ("offline", "3"), ("undrain", "2-3"), ("undrain", "3")]
    timeline.take_nodes([{"t": START + t, "event": what, "ranks": ranks} for t, (what, ranks) in enumerate(events)])
    texts = [mark.text for mark in timeline.nodes.marks]
    assert texts == ["mini-2 drained", "mini-3 drained", "mini-2 undrained"]


def test_long_curves_are_thinned_and_keep_their_peaks_and_their_end() -> None:
    samples = [Sample(float(n), 0, 9 if n == 5003 else 1, 0, 0) for n in range(10_001)]
    found = thinned(samples, 100)
    assert len(found) <= 100
    assert max(sample.running for sample in found) == 9
    assert (found[0].t < 200, found[-1]) == (True, samples[-1])


@pytest.mark.parametrize(
    ("found", "result"),
    [
        ({"exit_code": 0}, "COMPLETED"),
        ({"exit_code": 3}, "FAILED"),
        ({"exit_code": 143, "exception": "cancel: told"}, "CANCELED"),
        ({"exit_code": 142, "exception": "timeout"}, "TIMEOUT"),
        ({"exit_code": None, "exception": "exec: no such"}, "FAILED"),
        ({"exit_code": 0, "result": "FAILED"}, "FAILED"),
    ],
)
def test_how_a_job_ended_follows_from_its_events(found: dict[str, Any], result: str) -> None:
    assert result_of(found) == result


def test_a_job_is_told_part_by_part() -> None:
    timeline = Timeline("mini")
    timeline.take_past([], 5.0)
    timeline.take_jobs([{"number": 7, "id": "f7", "state": "SCHED", "t_submit": 6.0, "name": "work"}])
    told = timeline.changes(7.0)
    assert told
    assert [(row["id"], row["status"], row["lanes"]) for row in told["jobs"]] == [("f7", "PENDING", [])]
    assert timeline.changes(8.0) is None
    where = {"ranks": "0-1", "nodes": "mini-[0-1]", "ncores": 4}
    timeline.take_jobs([{"number": 7, "state": "RUN", "t_run": 8.0, **where}])
    told = timeline.changes(9.0)
    assert told
    assert [(row["status"], row["lanes"], row["cores"]) for row in told["jobs"]] == [("RUNNING", [0, 0], 4)]
    assert [(node["name"], node["lanes"]) for node in told["nodes"]] == [("mini-0", 1), ("mini-1", 1)]
    timeline.take_jobs([{"number": 7, "state": "INACTIVE", "t_cleanup": 9.5, "t_inactive": 9.6, "exit_code": 3}])
    told = timeline.changes(11.0)
    assert told
    assert [(row["status"], row["code"], row["end"]) for row in told["jobs"]] == [("FAILED", 3, 9.5)]
    assert [sample[1:4] for sample in timeline.samples] == [(1, 0, 0), (0, 1, 4), (0, 0, 0)]


@pytest.mark.parametrize(
    ("state", "word", "counts"),
    [
        *((state, "PENDING", (1, 0)) for state in ("NEW", "DEPEND", "PRIORITY", "SCHED")),
        *((state, "RUNNING", (0, 1)) for state in ("RUN", "CLEANUP")),
    ],
)
def test_a_job_is_counted_by_the_word_that_it_has(state: str, word: str, counts: tuple[int, int]) -> None:
    timeline = Timeline("mini")
    timeline.take_past([], 5.0)
    timeline.take_jobs([{"number": 7, "id": "f7", "state": state, "t_submit": 6.0}])
    told = timeline.changes(7.0)
    assert told
    assert ([row["status"] for row in told["jobs"]], told["samples"][-1][1:3]) == ([word], counts)
    assert [row[0] for row in told["rows"]] == (["Oldest"] if word == "PENDING" else [])


def test_only_so_many_ended_jobs_are_kept() -> None:
    timeline = Timeline("mini", most=3)
    timeline.take_past([job(n) for n in range(5)] + [job(9, state="RUN", result=None, t_cleanup=None)], 1.0)
    assert sorted(timeline.jobs.jobs) == [2, 3, 4, 9]
    timeline.changes(2.0)
    timeline.take_jobs([job(10)])
    told = timeline.changes(3.0)
    assert told
    assert (told["gone"], [row["number"] for row in told["jobs"]]) == (["2"], ["10"])


def test_jobs_whose_queue_went_with_its_lead_are_lost() -> None:
    timeline = Timeline("mini")
    rows = [job(1), job(2, state="SCHED", result=None, t_run=None, t_cleanup=None, t_inactive=None)]
    timeline.take_past(rows, 1.0)
    timeline.take_past([job(1)], 50.0)
    assert timeline.jobs.jobs[2]["result"] == "LOST"
    assert not timeline.jobs.active


def test_nodes_are_up_drained_or_missing_and_marks_say_when() -> None:
    timeline = Timeline("mini")
    timeline.take_nodes(
        [
            {"t": 1.0, "event": "restart", "ranks": "0-3"},
            {"t": 2.0, "event": "online", "ranks": "0-1"},
            {"t": 3.0, "event": "drain", "ranks": "1", "reason": "disk full"},
            {"t": 3.0, "event": "drain", "ranks": "1", "reason": "disk full"},
            {"t": 40.0, "event": "restart", "ranks": "0-3"},
            {"t": 50.0, "event": "online", "ranks": "0"},
            # the same start as Flux has kept it
            {"t": 1.4, "event": "restart", "ranks": ""},
        ],
        ["mini-[0-3]"],
    )
    timeline.take_size(3, 6.0)
    drained, missing = [{"ranks": "1", "reason": "disk full"}], [{"ranks": "2", "reason": "no pod"}]
    timeline.take_status({"drained": drained, "missing": missing, **STATUS})
    told = timeline.snapshot(7.0)
    assert [(node["name"], node["state"], node["reason"]) for node in told["nodes"]] == [
        ("mini-0", "up", ""),
        ("mini-1", "drained", "disk full"),
        ("mini-2", "missing", "no pod"),
    ]
    assert [(mark["t"], mark["kind"], mark["text"]) for mark in told["marks"]] == [
        (1.0, "lead", "Flux started"),
        (3.0, "drain", "mini-1 drained: disk full"),
        (40.0, "lead", "the lead started again"),
    ]


def test_a_change_of_the_size_has_its_reason_once() -> None:
    timeline = Timeline("mini")
    timeline.take_size(2, 10.0, [(5.0, "size 1 -> 2: a job waits")])
    timeline.take_size(4, 20.0)
    timeline.take_size(4, 21.0, [(5.0, "size 1 -> 2: a job waits"), (19.0, "size 2 -> 4: 9 jobs wait")])
    timeline.take_size(3, 99.0)
    assert [(mark.t, mark.text) for mark in sorted(timeline.nodes.marks)] == [
        (5.0, "size 1 -> 2: a job waits"),
        (19.0, "size 2 -> 4: 9 jobs wait"),
        (99.0, "size 4 -> 3"),
    ]
    assert [size for _, size in sorted(timeline.sizes)] == [1, 2, 2, 2, 4, 4, 3]


STATUS: dict[str, Any] = {
    **dict.fromkeys(("failures", "nodes", "autoscaling")),
    **dict.fromkeys(("pods", "containers", "problems"), ()),
    **dict.fromkeys(("flux", "why"), ""),
    "name": "mini",
    "namespace": "lab",
    "age": 60,
    "state": "Running",
    "size": 3,
    "maxSize": 4,
    "sizeFrom": "job",
    "longestWait": 0,
    "queues": [],
    "waiting": [{"jobs": ["ƒ2", "ƒ3"], "reason": "waits for resources"}],
}


def test_the_status_says_why_the_oldest_job_waits() -> None:
    timeline = Timeline("mini")
    never = {"state": "SCHED", "result": None, "t_run": None, "t_cleanup": None, "t_inactive": None}
    timeline.take_past([job(3, t_submit=9.0, **never), job(2, t_submit=8.0, **never)], 10.0)
    timeline.take_status(STATUS)
    told = timeline.snapshot(68.0)
    assert told["rows"][-1] == ("Oldest", "job f2 (work) for 1m: waits for resources", "waits")
    json.dumps(told)
    timeline.take_status({}, "Kubernetes is away")
    assert (timeline.snapshot(69.0)["trouble"], timeline.snapshot(69.0)["state"]) == ("Kubernetes is away", "Running")
