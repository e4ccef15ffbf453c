"""What the lead tells of jobs and nodes for a picture, by a real Flux: the past, each change, and the status."""

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from minicluster.lead.program import BOOT, first_line
from minicluster.picture.feed import Reader
from minicluster.picture.job_history import shown
from minicluster.picture.timeline import Timeline
from minicluster.pod import programs

SECONDS = 60
#: A shell in the Flux: each line of input is a command
SHELL = 'while read -r line; do eval "$line" >&2; done'


class Observed:
    """A Flux of two brokers, the program beside it, and what it tells."""

    def __init__(self, flux: str, folder: Path) -> None:
        (folder / "minicluster").mkdir()
        for name, file in programs().items():
            (folder / "minicluster" / name).symlink_to(file)
        (folder / "minicluster/agent.json").write_text('{"max_size": 2, "policy": null}')
        (folder / "boot").write_text(BOOT)
        (folder / "program").write_text(first_line("observe"))
        (folder / "explain").write_text(first_line("explain"))
        self.folder = folder
        observe = f'{{ cat {folder}/program; cat {folder}/open; }} | flux python -c "$(cat {folder}/boot)" 100 &'
        os.mkfifo(folder / "open")
        words = [
            flux,
            "start",
            "--test-size=2",
            "sh",
            "-c",
            f"flux submit --quiet --job-name=early true; sleep 1; {observe} {SHELL}",
        ]
        env = {**os.environ, "MINICLUSTER_HOME": str(folder), "PATH": f"{Path(flux).parent}:{os.environ['PATH']}"}
        pipe = subprocess.PIPE
        with (folder / "errors").open("w") as errors:
            self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=errors, env=env)
        self.keeper = os.open(folder / "open", os.O_RDWR)
        self.timeline = Timeline("mini")
        self.reader, self._rest = Reader(self.timeline), b""

    def do(self, command: str) -> None:
        """Run a command in the Flux."""
        assert self.process.stdin
        self.process.stdin.write(f"{command}\n".encode())
        self.process.stdin.flush()

    def until(self, condition: Callable[[Timeline], Any]) -> None:
        """Read what is told until it is so."""
        assert self.process.stdout
        end = time.monotonic() + SECONDS
        while not condition(self.timeline):
            assert select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0], "nothing is told"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, "the program ended"
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self.reader.take(json.loads(line), time.time())

    def close(self) -> None:
        os.close(self.keeper)
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(SECONDS)
        assert self.process.stdout
        self.process.stdout.close()


@pytest.fixture
def observed(flux_path: Path, tmp_path: Path) -> Iterator[Observed]:
    found = Observed(str(flux_path), tmp_path)
    yield found
    found.close()


def by_name(timeline: Timeline) -> dict[str, dict[str, Any]]:
    """Return the jobs as a page shows them, by their names."""
    return {row["name"]: row for row in map(shown, timeline.jobs.jobs.values())}


def has(name: str, status: str) -> Callable[[Timeline], bool]:
    """Return a condition: a job is in a state."""
    return lambda timeline: by_name(timeline).get(name, {}).get("status") == status


def settled(status: str) -> bool:
    """Return whether a status is of later than the drain, and no job waits."""
    _, summary = json.loads(status)
    return summary["drained"] == {"1": "disk full"} and not summary["waiting"]


def test_the_lead_tells_what_was_and_what_changes(observed: Observed) -> None:
    observed.until(has("early", "COMPLETED"))
    observed.do("flux submit --quiet --setattr=user.sample=7 --job-name=fails -n1 sh -c 'echo out; exit 3'")
    observed.until(has("fails", "FAILED"))
    fails = by_name(observed.timeline)["fails"]
    assert (fails["code"], fails["user"], fails["command"]) == (3, {"sample": 7}, "sh -c echo out; exit 3")
    assert fails["submit"] < fails["run"] < fails["end"]
    assert (len(fails["lanes"]), fails["cores"] >= 1) == (1, True)
    # as the node's shell tells it (usage.lua)
    memo = "flux job memo $FLUX_JOB_ID minicluster_usage.rank0.cores=2 minicluster_usage.rank0.memory_peak=1048576"
    observed.do(f"flux submit --quiet --job-name=used --requires=rank:0 sh -c '{memo}'")
    observed.until(lambda timeline: by_name(timeline).get("used", {}).get("used") == "1 MiB")
    observed.do("flux resource drain 1 disk full")
    observed.until(lambda timeline: any(mark.text.endswith("drained: disk full") for mark in timeline.nodes.marks))
    observed.do("flux submit --quiet --job-name=stuck -N2 true")
    observed.until(has("stuck", "PENDING"))
    observed.do("flux cancel --all")
    observed.until(has("stuck", "CANCELED"))
    observed.do("flux submit --quiet --job-name=late -n1 -t 1s sleep 60")
    observed.until(has("late", "TIMEOUT"))
    assert observed.timeline.nodes.up == {0, 1}
    observed.until(lambda _: settled(observed.reader.status))
    assert json.loads(observed.reader.status)[0]["max_size"] == 2


def test_the_events_of_many_jobs_are_told_together(observed: Observed) -> None:
    observed.until(has("early", "COMPLETED"))
    # read one by one, each after a pause, their events would take minutes
    observed.do("flux submit --quiet --cc=1-100 --job-name=many -n1 true")
    observed.until(lambda timeline: len(timeline.jobs.jobs) == 101 and not timeline.jobs.active)


def test_the_lead_tells_the_command_and_the_output_of_a_job(observed: Observed) -> None:
    observed.until(has("early", "COMPLETED"))
    seen = observed.folder / "seen"
    command = f"seq 9000; until [ -e {seen} ]; do sleep 0.1; done; echo err >&2; exit 3"
    observed.do(f"flux submit --quiet --job-name=talks -n1 sh -c '{command}'")
    observed.until(has("talks", "RUNNING"))
    name = by_name(observed.timeline)["talks"]["id"]
    # Flux may read the pipe of a task's errors before that of its output; a time may have the digits, without a \n
    has_read = f"flux job eventlog -p guest.output {name} | grep -q 9000.n"
    observed.do(f'timeout {SECONDS} sh -c "until {has_read}; do sleep 0.1; done"; touch {seen}')
    observed.until(has("talks", "FAILED"))
    boot, program, out = (observed.folder / each for each in ("boot", "explain", "out"))
    observed.do(f'flux python -c "$(cat {boot})" {name} shown <{program} >{out}.new; mv {out}.new {out}')
    end = time.monotonic() + SECONDS
    while not out.exists():
        assert time.monotonic() < end
        time.sleep(0.1)
    found = json.loads(out.read_text())
    assert found["command"] == f"sh -c {command}"
    assert (len(found["output"]) <= 20_000, "\n9000\n" in found["output"], "err\n" in found["output"]) == (True,) * 3
    assert found["job"]["result"] == "FAILED"
