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
job --job-name=fails sh -c 'echo one; echo two; exit 3'
flux job wait-event -t 60 "$last" clean >&2
why "$last"
for limit in 0 10m; do
  last=$(flux submit -n2 -t $limit --job-name=quiet sh -c 'echo one; sleep 300')
  flux job wait-event -t 60 -p output "$last" data >&2
  why "$last"
  flux cancel "$last"
done
job -c "$(nproc)" -t 10m --job-name=runs sleep 300
flux job wait-event -t 60 "$last" start >&2
why "$last"
job -c "$(nproc)" --job-name=waits true
why "$last"
job --urgency=0 --job-name=held true
why "$last"
job --dependency=afterok:"$last" --job-name=depends true
why "$(flux job id --to=dec "$last")"
job --urgency=0 --job-name=gone true
flux cancel "$last"
flux job wait-event -t 60 "$last" clean >&2
why "$last"
why f1
why nonsense
"""


def test_jobs_of_a_real_flux_have_reasons(flux_path: Path, tmp_path: Path) -> None:
    programs = tmp_path / "minicluster"
    programs.mkdir()
    for name in ("state", "saved", "offers", "need", "pending"):
        (programs / f"{name}.py").symlink_to(Path(__import__(name).__file__ or ""))
    environment = {
        **os.environ,
        "PATH": f"{flux_path.parent}:{os.environ['PATH']}",
        "MINICLUSTER_HOME": str(tmp_path),
        "boot": BOOT,
        "program": first_line("explain"),
    }
    words = ["flux", "start", "sh", "-c", SCRIPT]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
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
