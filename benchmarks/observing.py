"""What it costs a lead to be watched: by the page of `minicluster dashboard`, and by `minicluster status --watch`.

python -m benchmarks.observing FILE WHERE [SECONDS]

Starts a Flux of two brokers, by the flux in PATH or $FLUX_PREFIX/bin, and submits ten jobs a second. Saves the part of
a core that what is beside the lead's broker uses, that of the broker, the memory of the former, and how long after the
end of a job the page's program has told it.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from minicluster.lead.program import BOOT, first_line
from minicluster.pod import programs

from benchmarks import results

#: Jobs a second; seconds between two looks of `status --watch`, and until a program has started
RATE_JOBS, WATCH_PAUSE_SECONDS, START_SECONDS = 10, 2.0, 4.0
#: Who watches, by the name of the watcher
WATCHERS = {
    "": "nobody",
    "page": "`minicluster dashboard`, `minicluster top`",
    "status": "`minicluster status --watch`",
}
#: Submits jobs for some seconds, so many a second; tells the broker's process first
SUBMIT = """
import sys, time, flux
from flux.job import JobspecV1, submit_async
handle, begin, count = flux.Flux(), time.time(), 0
print(handle.attr_get("broker.pid"), flush=True)
spec = JobspecV1.from_command(["true"])
spec.environment, spec.cwd = {}, "/"
while time.time() < begin + float(sys.argv[1]):
    submit_async(handle, spec).get_id()
    count += 1
    time.sleep(max(0.0, begin + count / float(sys.argv[2]) - time.time()))
"""


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:  # it has just ended, and counts at the process above
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Return the MiB that a process has had at most."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    if "VmHWM:" not in text:
        return 0.0
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024


class Delays:
    """How long after the end of each job the program of the page tells it, in seconds."""

    def __init__(self, fifo: Path) -> None:
        os.mkfifo(fifo)
        self.seconds: list[float] = []
        self._thread = threading.Thread(target=self._read, args=(fifo,))
        self._thread.start()

    def _read(self, fifo: Path) -> None:
        is_past = True
        with fifo.open(encoding="utf-8") as lines:
            for line in lines:
                told, now = json.loads(line), time.time()
                if not is_past:
                    self.seconds += [now - job["t_inactive"] for job in told.get("jobs", ()) if job.get("t_inactive")]
                is_past = is_past and "past" not in told

    def close(self) -> list[float]:
        """Return them when the program has ended."""
        self._thread.join()
        return self.seconds


def measured(flux: str, folder: Path, seconds: float, watcher: str) -> dict[str, Any]:
    """Return what a watcher costs: "" for none, "page" or "status"."""
    env = {**os.environ, "MINICLUSTER_HOME": str(folder)}
    submit = f"flux python -c '{SUBMIT}' {2 * seconds + START_SECONDS} {RATE_JOBS}"
    words = [flux, "start", "--test-size=2", "sh", "-c", f"{submit}; sleep 0.1"]
    env["PATH"] = f"{Path(flux).parent}:{env['PATH']}"
    program = f'flux python -c "$(cat {folder}/boot)"'
    stay = f"sleep {2 * seconds + START_SECONDS}"
    script = {
        "": stay,
        "page": f"{{ cat {folder}/observe; {stay}; }} | {program} 10000 >{folder}/told",
        "status": f"while sleep {WATCH_PAUSE_SECONDS}; do {program} <{folder}/waiting; done",
    }[watcher]
    delays = Delays(folder / "told") if watcher == "page" else None
    words[-1] = f"({script}) >/dev/null & echo $!; {words[-1]}"
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(words, stdout=pipe, stderr=null, text=True, env=env, start_new_session=True) as process:
        out = iter(process.stdout or ())
        beside, broker = int(next(out)), int(next(out))
        time.sleep(START_SECONDS)
        begin, before, at_broker, most = time.monotonic(), used(beside), cpu(broker), 0.0
        while time.monotonic() < begin + seconds:
            most = max(most, *(memory(each) for each in [beside, *children(beside)]))
            time.sleep(0.2)
        took = time.monotonic() - begin
        found = {"beside_part": (used(beside) - before) / took, "broker_part": (cpu(broker) - at_broker) / took}
        os.killpg(process.pid, 9)
    late = delays.close() if delays else []
    return {
        "watcher": WATCHERS[watcher],
        **found,
        "beside_mib": most if watcher else None,
        "told_seconds": statistics.median(late) if late else None,
        "p95_seconds": statistics.quantiles(late, n=20)[-1] if late else None,
    }


def used(pid: int) -> float:
    """Return the CPU seconds of a process and of all below it."""
    return sum(map(cpu, [pid, *children(pid)]))


def children(pid: int) -> list[int]:
    """Return the processes below a process."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:  # it has just ended
        return []
    found = [int(each) for each in text.split()]
    return [*found, *(below for each in found for below in children(each))]


def main(file: str, where: str, seconds: str = "60") -> None:
    """Measure each, and save the figures."""
    prefix = os.environ.get("FLUX_PREFIX", "")
    flux = f"{prefix}/bin/flux" if prefix else "flux"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "minicluster").mkdir()
        for program, path in programs().items():
            (folder / "minicluster" / program).symlink_to(path)
        (folder / "minicluster/agent.json").write_text('{"max_size": 2, "policy": null}', encoding="ascii")
        (folder / "boot").write_text(BOOT, encoding="ascii")
        for each in ("observe", "waiting"):
            (folder / each).write_text(first_line(each), encoding="ascii")
        found = [measured(flux, folder, float(seconds), watcher) for watcher in WATCHERS]
    results.save(Path(file), where, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
