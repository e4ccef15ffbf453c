"""How true what jobs have used is, beside `/usr/bin/time -v`, and what it costs a node to know it.

    python -m benchmarks.job_usage FILE WHERE

Starts a Flux of one broker, by the flux in PATH or $FLUX_PREFIX/bin, and the guard of a node, in a PID namespace.
Saves what records and `time` say of jobs that take memory in several ways; prints the guard's part of a core, and its
memory, with ten jobs that wait, and what the program of a page takes beside the broker meanwhile.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from minicluster.lead.program import BOOT, first_line
from minicluster.pod import programs

from benchmarks import results
from benchmarks.observing import cpu

#: Takes MiB of memory in some seconds, then as much CPU, and waits
WORK = """
import sys, time
taken = []
for _ in range(20):
    taken.append(b"x" * ((int(sys.argv[1]) << 20) // 20))
    time.sleep(float(sys.argv[2]) / 20)
while time.process_time() < float(sys.argv[3]): pass
time.sleep(float(sys.argv[4]))
"""
#: The arguments of jobs, by what they do
JOBS = {
    "300 MiB, and 2 s of a CPU": ("300", "0", "2", "0"),
    "800 MiB in 4 s": ("800", "4", "0", "0"),
    "100 MiB for 0.1 s": ("100", "0", "0", "0.1"),
    "500 MiB as fast as it can, and ends": ("500", "0", "0", "0"),
}
WAITING_JOBS, COST_SECONDS = 10, 60.0


def run(home: Path, words: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    """Run a job, and return what its record says that it used, and what `time` says."""
    command = ["flux", "run", "/usr/bin/time", "-v", sys.executable, "-c", WORK, *words]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    report = subprocess.run(
        ["flux", "python", str(home / "minicluster/job_report.py"), "1"], capture_output=True, text=True, check=True
    )
    used: dict[str, Any] = json.loads(report.stdout.splitlines()[0])["usage"]["total"]
    return used, said


def truth(home: Path) -> list[results.Row]:
    """Return both by job."""
    rows: list[results.Row] = []
    for what, words in JOBS.items():
        used, said = run(home, words)
        labels = ("Maximum resident", "User time", "System time")
        peak, *seconds = (float(re.findall(rf"{label}.*: ([\d.]+)", said)[0]) for label in labels)
        memory = {"memory_mib": used["memory_peak"] / 2**20, "time_mib": peak / 1024}
        rows.append({"what": what, **memory, "cpu_seconds": used["cpu_seconds"], "time_seconds": sum(seconds)})
    return rows


def cost(guard: int) -> str:
    """Return what the guard takes while jobs wait."""
    for _ in range(WAITING_JOBS):
        subprocess.run(["flux", "submit", "--quiet", "-n1", "sleep", "600"], check=True)
    time.sleep(10)
    begin, before = time.monotonic(), cpu(guard)
    time.sleep(COST_SECONDS)
    part = (cpu(guard) - before) / (time.monotonic() - begin)
    pss = int(re.findall(r"Pss: +(\d+)", Path(f"/proc/{guard}/smaps_rollup").read_text(encoding="ascii"))[0])
    return f"{part:.2%} of a core, {pss / 1024:.1f} MiB"


def cost_of_page() -> str:
    """Return what it costs that a page shows the use of these jobs."""
    broker = int(subprocess.run(["flux", "getattr", "broker.pid"], capture_output=True, check=True).stdout)
    words = ["flux", "python", "-c", BOOT, "100"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as page:
        assert page.stdin
        page.stdin.write(first_line("observe"))
        page.stdin.flush()
        for line in page.stdout or ():
            if "use" in json.loads(line):
                break
        begin, before = time.monotonic(), (cpu(page.pid), cpu(broker))
        time.sleep(COST_SECONDS)
        took = time.monotonic() - begin
        parts = [(now - then) / took for now, then in zip((cpu(page.pid), cpu(broker)), before, strict=True)]
        page.stdin.close()
    return f"a page: {parts[0]:.2%} of a core, and {parts[1]:.2%} for the broker"


def within(home: Path, file: Path, where: str) -> None:
    """Measure in the instance."""
    run_folder = home / "config/run/flux"
    guard = ["flux", "python", str(home / "minicluster/guard.py"), "/sys/fs/cgroup", "0", "here", str(run_folder)]
    with subprocess.Popen(guard) as process:
        while not (home / "config/run/usage/begun").exists() and process.poll() is None:
            time.sleep(0.1)
        results.save(file, where, truth(home))
        print(cost(process.pid))
        print(cost_of_page())
        subprocess.run(["flux", "cancel", "--all", "--quiet"], check=True)
        process.terminate()


def main() -> None:
    """Start Flux with what a pod gives its jobs' shells."""
    file, where = sys.argv[1:3]
    if sys.argv[3:]:
        within(Path(sys.argv[3]), Path(file), where)
        return
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        path = f"{os.environ.get('FLUX_PREFIX', '/usr')}/bin:{os.environ['PATH']}"
        (home / "config/run").mkdir(parents=True)
        (home / "minicluster").mkdir()
        (home / "minicluster/agent.json").write_text('{"max_size": 1, "policy": null}', encoding="ascii")
        (home / "bin").mkdir()
        (home / "bin/flux").symlink_to(shutil.which("flux", path=path) or "")
        for name, program in programs().items():
            shutil.copy(program, home / "minicluster" / name)
        own = {"PATH": path, "MINICLUSTER_HOME": folder, "FLUX_SHELL_RC_PATH": f"{folder}/minicluster"}
        run_folder = home / "config/run/flux"
        run_folder.mkdir()
        words = ["flux", "start", f"-o-Srundir={run_folder}", f"-o-Slocal-uri=local://{run_folder}/local-0"]
        inner = [sys.executable, "-m", "benchmarks.job_usage", file, where, folder]
        # as in a pod, whose other processes are few
        apart = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--pid", "--mount-proc", "--fork"]
        subprocess.run([*apart, *words, *inner], env={**os.environ, **own}, check=True)


if __name__ == "__main__":
    main()
