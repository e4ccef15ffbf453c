"""The program with which `minicluster flux` finds its job and cancels it, in a real Flux."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from minicluster.exec.found_again import CLIENT_ATTRIBUTE
from minicluster.lead.program import BOOT, first_line

#: One job has the only core, and another waits; each line of output is an answer of the program
SCRIPT = """
mine() { printf %s "$program" | flux python -c "$boot" "$@"; }
mark() { echo "--setattr=$1=$2"; }
mine key-w 60 find
flux submit -n1 -c "$(nproc)" "$(mark "$1" key-r)" sleep 300 >&2
flux submit -n1 -c "$(nproc)" "$(mark "$1" key-w)" true >&2
flux submit -n1 -c "$(nproc)" true >&2
flux job wait-event -t 30 "$(flux jobs -no '{id.f58}' -f running)" start >&2
mine key-r 60 stop
mine key-w 60 find
mine key-w 60 stop
mine key-w 60 cancel
mine key-w 60 find
mine key-r 60 cancel
flux queue drain -t 30 >&2
mine key-r 60 find
# an age that is no more than the difference of the clocks
mine key-r -60 find
# what submits is ended with its last part, and what a job has got of its input is told
(sh -c 'sleep 300; true' "$(mark "$1" key-p)") &
mine key-p 60 find
code=0; wait $! || code=$?
mine key-p 60 find
printf 'three' | flux run -n1 "$(mark "$1" key-i)" cat >&2
mine key-i 60 find
echo $code
flux jobs -ano '{result_abbrev}'
"""


def test_the_flux_command_finds_and_cancels_its_job_by_its_key(flux_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{flux_path.parent}:{os.environ['PATH']}",
        "boot": BOOT,
        "program": first_line("mine"),
    }
    words = ["flux", "start", "sh", "-c", SCRIPT, "mine", CLIENT_ATTRIBUTE]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    *lines, code, fed, third, waiting, running = done.stdout.split("\n")[:-1]
    assert (code, fed, third, waiting, running) == ("137", "CD", "CD", "CA", "CA")
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    ids = [job.pop("id", "") for job in found]
    assert ids[1] != ids[2]
    assert ids == ["", ids[1], ids[2], ids[2], "", ids[2], ids[1], ids[1], "", "", "", ids[-1]]
    assert [job.get("cancelled") for job in found[:9]] == [None, False, False, True, None, False, True, False, None]
    assert [job.get("input") for job in found if "input" in job] == [[0, False]] * 3 + [[5, True]]
