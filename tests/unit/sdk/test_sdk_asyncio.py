"""The SDK in programs of asyncio: jobs are awaited, and a cancelled task cancels its job."""

import json
from pathlib import Path

import pytest
from sdk_programs import Programs

PROGRAM = """
import asyncio, json, time
from minicluster.sdk import MiniCluster

async def main():
    cluster = await asyncio.to_thread(MiniCluster.connect, "mini")
    told = []
    async def runs():
        job = cluster.submit("wait")
        await asyncio.to_thread(job.wait_for_id, 20)
        return job
    async def tick():
        while True:
            told.append(time.monotonic())
            await asyncio.sleep(0.01)
    ticks = asyncio.create_task(tick())
    {body}
    ticks.cancel()
    gaps = [b - a for a, b in zip(told, told[1:])]
    await asyncio.to_thread(cluster.close)
    return found, max(gaps, default=0) < 2

print(json.dumps(asyncio.run(main())))
"""
BODIES = {
    "a job": ("found = (await cluster.submit('echo a')).output", "a\n", 0),
    "many": (
        "found = [job.output for job in await asyncio.gather(*(cluster.submit(f'echo {n}') for n in range(300)))]",
        [f"{number}\n" for number in range(300)],
        0,
    ),
    "the first": (
        "slow, quick = cluster.submit('wait'), cluster.submit('echo a')\n"
        "    done = next(asyncio.as_completed([slow, quick]))\n"
        "    found = (await done).output; slow.cancel()",
        "a\n",
        1,
    ),
    "a cancelled task": (
        "task = asyncio.ensure_future(await runs())\n"
        "    await asyncio.sleep(0); task.cancel(); await asyncio.wait([task]); found = task.cancelled()",
        True,
        1,
    ),
    "a time-out": (
        "found = None\n"
        "    try: await asyncio.wait_for(await runs(), 0.01)\n"
        "    except TimeoutError as error: found = 'late'",
        "late",
        1,
    ),
    "a shielded job": (
        "job = await runs()\n"
        "    try: await asyncio.wait_for(asyncio.shield(job), 0.01)\n"
        "    except TimeoutError: found = job.done()",
        False,
        0,
    ),
    "a failure in a group": (
        "found, job = None, await runs()\n"
        "    async def one(): await job\n"
        "    async def two(): await asyncio.sleep(0); raise KeyError\n"
        "    try:\n"
        "        async with asyncio.TaskGroup() as group: group.create_task(one()); group.create_task(two())\n"
        "    except* KeyError: found = 'failed'",
        "failed",
        1,
    ),
}


@pytest.mark.parametrize("body", BODIES)
def test_a_coroutine_waits_for_jobs_and_cancels_them(tmp_path: Path, body: str) -> None:
    (text, expected, cancellations), programs = BODIES[body], Programs(tmp_path)
    done = programs.run_fork(PROGRAM.replace("{body}", text))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [expected, True]
    assert sum("cancel" in asked for asked in programs.asked()) == cancellations
