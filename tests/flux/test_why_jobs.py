"""What `minicluster why` asks the lead about jobs, in a real Flux."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from minicluster.lead.program import BOOT, first_line
from minicluster.status.why import job_in_words

#: The jobs of one node: each line of output is an answer of the program
SCRIPT = """
why() { printf '%s' "$program" | flux python -c "$boot" "$@"; }
job() { last=$(flux submit -n1 "$@"); }
# what Flux lists of a job may lag behind its events
listed() { until [ "$(flux jobs -no '{state}' "$last" 2>/dev/null)" = "$1" ]; do sleep 0.05; done; }
job --job-name=fails sh -c 'echo one; echo two; exit 3'
listed INACTIVE
why "$last"
for limit in 0 10m; do
  last=$(flux submit -n2 -t $limit --job-name=quiet sh -c 'echo one; sleep 300')
  # its shell has begun before its output is there: -W
  flux job wait-event -W -t 60 -p guest.output "$last" data >&2 || exit
  listed RUN
  why "$last"
  flux cancel "$last"
done
job -c "$(nproc)" -t 10m --job-name=runs sleep 300
listed RUN
why "$last"
job -c "$(nproc)" --job-name=waits true
listed SCHED
why "$last"
job --urgency=0 --job-name=held true
listed SCHED
why "$last"
job --dependency=afterok:"$last" --job-name=depends true
listed DEPEND
why "$(flux job id --to=dec "$last")"
job --urgency=0 --job-name=gone true
flux cancel "$last"
listed INACTIVE
why "$last"
why f1
why nonsense
"""


#: What would become of jobs; the second part has one job that runs, and one that waits for it
FITS = """
fit() { printf '%s' "$program" | flux python -c "$boot" "$@"; }
cores=$(nproc)
fit -n1 -t 10m
fit -N2
fit -n1 -g1
fit --nosuch
fit -n1 true
fit -n1 -q debug
flux submit -c "$cores" -t 5m sleep 300 >&2
flux job wait-event -t 60 "$(flux submit -c "$cores" -t 7m sleep 300)" priority >&2 || exit
fit -n1 -t 1m
flux submit -c "$cores" sleep 300 >&2
fit -c "$cores"
flux cancel --all
"""


def answers(flux_path: Path, folder: Path, program: str, script: str) -> list[dict[str, Any]]:
    """Return what a program of ours says in an instance of one broker, as a script runs it."""
    programs = folder / "minicluster"
    programs.mkdir()
    for name in ("state", "saved", "offers", "need", "pending"):
        (programs / f"{name}.py").symlink_to(Path(__import__(name).__file__ or ""))
    (folder / "bin").mkdir()
    (folder / "bin/flux").symlink_to(flux_path)
    path = {"PATH": f"{flux_path.parent}:{os.environ['PATH']}", "MINICLUSTER_HOME": str(folder)}
    environment = {**os.environ, **path, "boot": BOOT, "program": first_line(program)}
    words = ["flux", "start", "sh", "-c", script]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_would_become_of_a_job_is_known_before_it_is_submitted(flux_path: Path, tmp_path: Path) -> None:
    *alone, short, late = answers(flux_path, tmp_path, "would_fit", FITS)
    assert [each.get("refused") or each.get("error") or each["waits"] for each in alone] == [
        "waits for the scheduler",
        "it asks for 2 nodes of 1 core, and all nodes have room for 1",
        "it asks for 1 slot of 1 core and 1 GPU, and no node has a GPU",
        "unrecognized arguments: --nosuch",
        "the options are of one job, without words of a command",
        "Invalid queue 'debug' specified",
    ]
    assert alone[0]["starts"]["at"] - alone[0]["now"] < 2
    assert [each["waits"] for each in (short, late)] == ["waits for resources that other jobs have"] * 2
    # the two that are before it
    assert abs(short["starts"]["at"] - short["now"] - 720) < 30
    assert (late["starts"]["at"], bool(late["starts"]["after"])) == (None, True)


def test_jobs_of_a_real_flux_have_reasons(flux_path: Path, tmp_path: Path) -> None:
    found = answers(flux_path, tmp_path, "explain", SCRIPT)
    *jobs, unknown, wrong = found
    assert (unknown["job"], wrong) == ({}, {"error": "no id"})
    said, starts = [], []
    for each in jobs:
        job = each["job"]
        ident, held = job["id"], next((one["job"]["id"] for one in jobs if one["job"]["name"] == "held"), "")
        # how long and where is not the matter
        job.update(t_submit=100.0, t_run=job["t_run"] and 160.0, t_cleanup=job["t_cleanup"] and 172.0)
        job["nodes"] = job["nodes"] and "here"
        if each["starts"]:
            assert abs(each["starts"].pop("at") - each["now"] - 600) < 60
            starts.append(each.pop("starts"))
        each.update(starts=None, quiet_since=each["quiet_since"] and -520.0, now=200.0)
        lines = [f"{text} $ {way}" if way else text for text, way in job_in_words("mini", each, {"": 1})]
        # whether Flux prints ƒ depends on build and locale
        said += [line.replace("ƒ", "f").replace(held, "HELD").replace(ident, "JOB") for line in lines]
    assert said == [
        "job JOB (fails) failed with exit code 3 after 12s on here",
        "| one",
        "| two",
        "job JOB (quiet) runs on here for 40s",
        "it has printed nothing for 12m and has no time limit: if its work is done, it hangs in its end, as programs "
        "with Debian's MPICH may $ minicluster flux mini -- cancel JOB",
        "job JOB (quiet) runs on here for 40s",
        "job JOB (runs) runs on here for 40s",
        "job JOB (waits) waits for 1m40s for resources that other jobs have",
        "job HELD (held) is held $ minicluster flux mini -- job urgency HELD default",
        "job JOB (depends) waits for 1m40s for after-success=HELD",
        "job JOB (gone) was cancelled",
    ]
    # not all schedulers, and not those of old versions, say when
    if not starts:
        return
    runs = next(one["job"]["id"] for one in jobs if one["job"]["name"] == "runs")
    assert [{"after": one["after"].replace("ƒ", "f")} for one in starts] == [{"after": runs.replace("ƒ", "f")}]
