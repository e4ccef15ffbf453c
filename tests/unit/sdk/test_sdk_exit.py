"""What becomes of jobs when the program that submitted them ends: they go on, or are cancelled, as it asked."""

from pathlib import Path

import pytest
from sdk_programs import Programs

CONNECTED = "from minicluster.sdk import MiniCluster\ncluster = MiniCluster.connect('mini')\n"
SUBMITTED = ["submit", "submit"]
CANCELLED = [*SUBMITTED, "cancel", "cancel"]
ENDS = {
    "it just ends": ("cluster.submit('wait'); cluster.submit('wait')", SUBMITTED),
    "it fails": ("cluster.submit('wait'); cluster.submit('wait'); 1 / 0", SUBMITTED),
    "it is interrupted": ("a, b = cluster.submit('wait'), cluster.submit('wait'); raise KeyboardInterrupt", SUBMITTED),
    "its coroutines are interrupted": (
        "import asyncio, signal\n"
        "async def main():\n"
        "    a, b = cluster.submit('wait'), cluster.submit('wait'); await asyncio.to_thread(b.wait_for_id, 20)\n"
        "    asyncio.get_running_loop().call_later(0.05, signal.raise_signal, 2); await asyncio.gather(a, b)\n"
        "asyncio.run(main())",
        CANCELLED,
    ),
    "it leaves the block": ("with cluster:\n    cluster.submit('wait'); cluster.submit('wait')", SUBMITTED),
    "it forgets the cluster": ("a, b = cluster.submit('wait'), cluster.submit('wait')\ndel cluster", SUBMITTED),
    "a thread of it goes on": (
        "import threading\n"
        "def go():\n    threading.main_thread().join()\n"
        "    cluster.submit('a').result(20)\n    cluster.submit('a').result(20)\n"
        "threading.Thread(target=go).start()",
        SUBMITTED,
    ),
    "it does not wait for its executor": (
        "pool = cluster.executor(); pool.submit('wait'); pool.submit('wait'); pool.shutdown(wait=False)",
        SUBMITTED,
    ),
    "it shuts the executor down": (
        "pool = cluster.executor(); pool.submit('wait'); pool.submit('wait').wait_for_id(20)\n"
        "pool.shutdown(wait=False, cancel_futures=True)",
        CANCELLED,
    ),
    "it cancels, and closes": (
        "a, b = cluster.submit('wait'), cluster.submit('wait'); b.wait_for_id(20)\n"
        "a.cancel(); b.cancel(); cluster.close()",
        CANCELLED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_the_lead_knows_what_a_program_asked_for_when_it_ends(tmp_path: Path, end: str) -> None:
    (what, expected), programs = ENDS[end], Programs(tmp_path)
    done = programs.run(CONNECTED + what)
    assert done.returncode == {"fails": 1, "interrupted": -2}.get(end.rpartition(" ")[2], 0), done.stderr
    assert [next(name for name in ("submit", "cancel") if name in asked) for asked in programs.asked()] == expected


def test_a_cluster_that_nobody_uses_leaves_no_connection(tmp_path: Path) -> None:
    done = Programs(tmp_path).run(
        CONNECTED
        + "import gc, subprocess, threading\n"
        + "cluster.submit('true').result(20)\ndel cluster\n"
        + "while threading.active_count() > 1: gc.collect()\n"
        + "print([one.name for one in threading.enumerate()])"
    )
    assert (done.stdout, done.stderr) == ("['MainThread']\n", "")
