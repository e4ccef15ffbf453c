"""The program by which `minicluster output` prints what a job has printed, in a real Flux."""

import os
import subprocess
from pathlib import Path

import pytest
from minicluster.lead.program import BOOT, first_line

#: Each step leaves NAME.out, NAME.err and NAME.code
SCRIPT = r"""
set -e
printed() {
  name=$1; shift
  code=0
  printf %s "$program" | flux python -c "$boot" demo "$@" >"$name.out" 2>"$name.err" || code=$?
  echo $code >"$name.code"
}
submit() { flux submit -n1 "$@" | sed 's/ƒ/f/'; }
has_output() { flux job wait-event -W -t 60 -p guest.output "$1" "$2" >/dev/null; }
ends() { flux job wait-event -t 60 "$1" clean >/dev/null; }
both=$(submit sh -c 'echo out; echo err >&2; printf "\377\303\251\n"; exit 3')
ends $both
printed ended $both
printed number $(flux job id --to=dec $both)
printed followed $both follow
runs=$(submit sh -c 'echo begun; until [ -e go ]; do sleep 0.1; done; echo done')
has_output $runs data
printed running $runs
printed follows $runs follow &
until grep -q begun follows.out 2>/dev/null; do sleep 0.1; done
touch go
wait
# its shell has begun well before its output is there
echo 'os.execute("sleep 2")' >late.lua
held=$(submit --urgency=hold -o userrc=late.lua sh -c 'echo at last')
printed held $held
printed waits $held follow &
flux job urgency $held 16
wait
never=$(submit --urgency=hold true)
flux cancel $never
ends $never
printed never $never
printed never-follows $never follow
file=$(submit --output=to.txt echo kept)
ends $file
printed file $file
printed file-follows $file follow
printf 'stays' >'a "file" $x'
writes=$(submit --output='a "file" $x' sh -c 'echo begun; until [ -e on ]; do sleep 0.1; done; echo done')
has_output $writes redirect
printed writing $writes
printed file-grows $writes follow &
until grep -q begun file-grows.out 2>/dev/null; do sleep 0.1; done
touch on
wait
rm 'a "file" $x'
printed removed $writes
apart=$(submit --output=out.txt --error=/dev/null echo kept)
ends $apart
printed apart $apart
printed unknown f234
printed nonsense no-id
flux job purge --force --num-limit=0 >/dev/null
mkdir -p config/run/history
printf '{"id": "%s", "number": %s, "name": "lmp", "result": "FAILED", "exit_code": 3}\n' \
  $both $(flux job id --to=dec $both) >config/run/history/jobs.jsonl
printed forgotten $both
printed gone $runs
echo "$both $runs $held $never $file $writes $apart"
"""


@pytest.fixture
def ran(flux_path: Path, tmp_path: Path) -> tuple[Path, list[str]]:
    """A folder with what each step printed, and the ids of the jobs."""
    environment = {
        **os.environ,
        "PATH": f"{flux_path.parent}:{os.environ['PATH']}",
        "MINICLUSTER_HOME": str(tmp_path),
        "boot": BOOT,
        "program": first_line("printed"),
    }
    (tmp_path / "steps").write_text(SCRIPT)
    done = subprocess.run(
        ["flux", "start", "sh", "steps"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return tmp_path, done.stdout.split()


def test_what_a_job_has_printed_is_printed_in_each_of_its_states(ran: tuple[Path, list[str]]) -> None:
    folder, (both, runs, held, never, file, writes, apart) = ran

    def of(name: str) -> tuple[int, bytes, str]:
        code, out, err = ((folder / f"{name}.{end}").read_bytes() for end in ("code", "out", "err"))
        return int(code), out, err.decode()

    def says(text: str) -> str:
        return f"minicluster: {text}\n"

    out = b"out\n\xff\xc3\xa9\n"
    assert [of(name) for name in ("ended", "number", "followed")] == [(0, out, "err\n")] * 3
    assert of("running") == (0, b"begun\n", "")
    assert of("follows") == (0, b"begun\ndone\n", "")
    assert of("held") == (0, b"", says(f"job {held} has not begun yet"))
    assert of("waits") == (0, b"at last\n", "")
    assert of("never") == of("never-follows") == (0, b"", says(f"job {never} never ran"))
    (host,) = {line.split()[-1] for line in of("file")[2].splitlines()}
    there = says(f"the output of job {file} goes to the file {folder}/to.txt of {host}")
    assert of("file") == of("file-follows") == (0, b"kept\n", there)
    there = says(f'the output of job {writes} goes to the file {folder}/a "file" $x of {host}')
    assert of("writing") == (0, b"begun\n", there)
    assert of("file-grows") == (0, b"begun\ndone\n", there)
    gone = says(f'it can\'t be read there, or is gone: {folder}/a "file" $x')
    assert of("removed") == (1, b"", f"{there}{gone}")
    told = [
        says(f"the output of job {apart} goes to the file {at} of {host}") for at in (folder / "out.txt", "/dev/null")
    ]
    assert of("apart") == (0, b"kept\n", "".join(told))
    none = "`minicluster jobs demo` lists them"
    assert of("unknown") == (1, b"", says(f"demo has no job f234: {none}"))
    assert of("nonsense") == (1, b"", says(f"'no-id' is not a job's id: {none}"))
    gone = f"the output of job {both} (lmp), which ended FAILED with exit code 3, is gone"
    assert of("forgotten") == (
        1,
        b"",
        says(f"{gone}: Flux keeps only that of the last jobs; flux.keptJobs says how many"),
    )
    assert of("gone") == (1, b"", says(f"demo has no job {runs}: {none}"))
