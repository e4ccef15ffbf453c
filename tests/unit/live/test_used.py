"""What is said of what a job has used, and what to ask for next time."""

import re
from typing import Any

import pytest
from minicluster.status.reported import table
from minicluster.status.used import in_words

GIB = 1 << 30


def job(
    *nodes: tuple[float | None, float | None], seconds: float = 100.0, cores: int = 4, tasks: int = 2
) -> dict[str, Any]:
    """Return the record of a job whose nodes of 4 GiB have used so much memory, in GiB, and so many cores."""
    used = {
        f"mc-{number}": {
            "memory_peak": None if memory is None else int(memory * GIB),
            "memory_limit": 4 * GIB,
            "cpu_seconds": None if cpu is None else cpu * seconds,
            "cores": cores,
        }
        for number, (memory, cpu) in enumerate(nodes)
    }
    total = {
        key: None if None in values else sum(values)
        for key in ("memory_peak", "memory_limit", "cpu_seconds", "cores")
        for values in [[node[key] for node in used.values()]]
    }
    times = {"t_run": 100.0, "t_cleanup": 100.0 + seconds, "t_inactive": 900.0}
    what = {"id": "f1", "name": "lmp", "nodes": "mc-0", "state": "INACTIVE", "result": "COMPLETED", "exit_code": 0}
    return {**what, **times, "ntasks": tasks, "usage": {"nodes": used, "total": total}}


FULL = "|" * 20


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            job((0.3, 1.0), (0.1, 0.9), tasks=2),
            [
                "it used 0.4 of 8 GiB and 1.9 of 8 cores on 2 nodes: ask for less",
                "[||..................] 7% memory of mc-0: 0.3 of 4 GiB",
                "[|||||...............] 25% CPU of mc-0: 1.0 of 4 cores",
                "[|...................] 2% memory of mc-1: 0.1 of 4 GiB",
                "[|||||...............] 22% CPU of mc-1: 0.9 of 4 cores",
                "* most of its cores did nothing: ask for -n2 -c1",
                "* less memory would do, if no other job needs it: resources.limits.memory",
            ],
        ),
        # each task has a core
        (
            job((3.8, 1.2), tasks=4),
            [
                "it used 3.8 of 4 GiB and 1.2 of 4 cores on 1 node: ask for less",
                "[|||||||||||||||||||.] 95% memory of mc-0: 3.8 of 4 GiB",
                "[||||||..............] 30% CPU of mc-0: 1.2 of 4 cores",
                "* most of its cores did nothing: ask for -n2",
                "* it used nearly all of a node's memory: raise resources.limits.memory, or use more nodes: -N",
            ],
        ),
        (
            job((2.0, 4.2), (2.0, 0.0), tasks=8),
            [
                "it used 4 of 8 GiB and 4.2 of 8 cores on 2 nodes: ask for less",
                "[||||||||||..........] 50% memory of mc-0: 2 of 4 GiB",
                f"[{FULL}] 105% CPU of mc-0: 4.2 of 4 cores",
                "[||||||||||..........] 50% memory of mc-1: 2 of 4 GiB",
                "[....................] 0% CPU of mc-1: 0.0 of 4 cores",
                "* mc-1 did no work: if that is how the program is, ask for -N1",
            ],
        ),
        # too short to tell, but for what may have ended it
        (job((2.0, 0.1), seconds=2.0), []),
        (
            job((3.9, 0.1), seconds=2.0),
            [
                "it used 3.9 of 4 GiB and 0.1 of 4 cores on 1 node",
                "[||||||||||||||||||||] 97% memory of mc-0: 3.9 of 4 GiB",
                "[|...................] 2% CPU of mc-0: 0.1 of 4 cores",
            ],
        ),
        (job((None, None)), []),
        ({**job(), "usage": None}, []),
        # the record of an older lead, and of a job that never ran
        ({"t_run": None, "t_cleanup": None, "t_inactive": 3.0}, []),
    ],
)
def test_a_job_has_used_a_part_of_what_it_had(record: dict[str, Any], expected: list[str]) -> None:
    assert [*in_words(record)] == expected


def test_a_job_that_runs_has_used_something_so_far() -> None:
    assert [*in_words({**job((0.3, 1.0)), "t_cleanup": None}, now=300.0)] == [
        "it has used 0.3 of 4 GiB and 0.5 of 4 cores on 1 node",
        "[||..................] 7% memory of mc-0: 0.3 of 4 GiB",
        "[|||.................] 12% CPU of mc-0: 0.5 of 4 cores",
    ]


def test_of_many_nodes_the_first_have_bars() -> None:
    said = [*in_words(job(*[(2.5, 4.0)] * 18, tasks=72))]
    assert len(said) == 1 + 2 * 16 + 1
    assert (said[0], said[-1]) == ("it used 45 of 72 GiB and 72.0 of 72 cores on 18 nodes", "and 2 more nodes")


def test_a_job_with_gpus_has_used_some_of_them_and_one_with_many_threads_is_told() -> None:
    record = job((2.5, 4.0))
    gpus = {"gpus": 4, "gpus_busy": 1.3, "gpu_memory_peak": 20 * GIB, "gpu_memory_limit": 320 * GIB, "threads": 9}
    for used in (record["usage"]["total"], record["usage"]["nodes"]["mc-0"]):
        used.update(gpus)
    assert [*in_words(record)] == [
        "it used 2.5 of 4 GiB, 4.0 of 4 cores and 1.3 of 4 GPUs with 20 of 320 GiB on 1 node: ask for less",
        "[|||||||||||||.......] 62% memory of mc-0: 2.5 of 4 GiB",
        f"[{FULL}] 100% CPU of mc-0: 4.0 of 4 cores",
        "[|||||||.............] 32% GPU of mc-0: 1.3 of 4 GPUs with 20 of 320 GiB",
        "* its GPUs did little: ask for fewer: -g, or give them more work",
        "* it had 9 threads at once: ask for more cores, -c, or let it start fewer: OMP_NUM_THREADS",
    ]
    assert [re.split(" {2,}", line)[-1] for line in table([record, job()], 0.0, is_wide=True).splitlines()] == [
        "GPU",
        "1.3 of 4 GPUs with 20 of 320 GiB",
        "-",
    ]


def test_the_wide_table_has_memory_and_cpu() -> None:
    rows = [job((0.3, 1.0), (0.1, 0.9)), {**job(), "usage": None}]
    assert [re.split(" {2,}", line)[-2:] for line in table(rows, 0.0, is_wide=True).splitlines()] == [
        ["MEM", "CPU"],
        ["0.4 of 8 GiB", "1.9 of 8 cores"],
        ["-", "-"],
    ]
