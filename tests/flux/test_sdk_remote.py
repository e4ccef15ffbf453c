"""The program that the SDK sends to the lead, in a real Flux of two brokers, and in a lead of ours."""

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from minicluster.lead import program
from minicluster.pod import programs
from minicluster.sdk import RemoteTraceback
from minicluster.sdk.job_queue import work_of
from minicluster.sdk.outcome import finished

from tools.clients import until
from tools.releases import MOUNT

SECONDS = 60


class Remote:
    """The program, as a client talks to it."""

    def __init__(self, words: list[str], env: Mapping[str, str], kept: int = 16 << 20) -> None:
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self._rest = b""
        text = program.first_line("remote")
        assert "KEPT_BYTES = 16 << 20" in text
        self._write(text.replace("KEPT_BYTES = 16 << 20", f"KEPT_BYTES = {kept}"))
        self.version = self.reply()["ready"]

    def ask(self, key: str, **request: Any) -> None:
        self._send({"key": key, **request})

    def submit(
        self, key: str, *command: str, again: bool = False, drop: bool = False, age: float = 0, **options: Any
    ) -> None:
        self.ask(key, submit={"command": command, **options}, again=again, drop=drop, age=age)

    def _send(self, message: object) -> None:
        self._write(json.dumps(message) + "\n")

    def _write(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()

    def reply(self) -> Any:
        """Return the next reply that is not a sign of life."""
        end = time.monotonic() + SECONDS
        while "alive" in (found := json.loads(self._line())):
            assert time.monotonic() < end, "no reply but signs of life"
        return found

    def _line(self) -> bytes:
        assert self.process.stdout
        while b"\n" not in self._rest:
            assert select.select([self.process.stdout], [], [], SECONDS)[0], "no reply"
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, "the program ended"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def replies(self, key: str, last: str) -> dict[str, Any]:
        """Return the replies for a key, by kind, until one of a certain kind; there must be no others."""
        found: dict[str, Any] = {}
        while last not in found:
            reply = self.reply()
            assert reply.pop("key") == key
            assert "error" not in reply, reply
            found |= reply
        return found

    def end(self, key: str) -> dict[str, Any]:
        """Return the end of a job."""
        end: dict[str, Any] = self.replies(key, "end")["end"]
        return end

    def close(self) -> None:
        """Let it end: it does so with its standard input."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        assert self.process.wait(SECONDS) == 0
        self.process.stdout.close()


@pytest.fixture
def remote(request: pytest.FixtureRequest, flux_path: Path, tmp_path: Path) -> Iterator[Remote]:
    flux = str(flux_path)
    (tmp_path / "minicluster").mkdir()
    for name, file in programs().items():
        (tmp_path / "minicluster" / name).symlink_to(file)
    words = [flux, "start", "--test-size=2", flux, "python", "-c", program.BOOT]
    remote = Remote(words, {**os.environ, "MINICLUSTER_HOME": str(tmp_path)}, getattr(request, "param", 16 << 20))
    version = subprocess.run([flux, "--version"], capture_output=True, text=True, check=True).stdout
    assert remote.version == version.split("commands:")[1].split()[0]
    yield remote
    remote.close()


def test_the_sdk_program_runs_jobs_and_reports_their_ends(remote: Remote) -> None:
    remote.submit("a", "sh", "-c", "printf 'é\\n\\377'; printf err >&2; exit 3", environment={"A": "1"})
    end = remote.end("a")
    assert (end["status"], end["exception"]) == (3 << 8, None)
    pieces = sorted(tuple(piece) for piece in end["output"])
    assert "".join(text for stream, text in pieces if stream == "stdout") == "é\n\ufffd"
    assert [text for stream, text in pieces if stream == "stderr"] == ["err"]
    remote.submit("b", "no-such-program")
    end = remote.end("b")
    assert end["exception"]["type"] == "exec"
    assert "no-such-program" in end["output"][-1][1]
    remote.submit("c", "true", attributes={"system.queue": "nowhere"})
    assert "nowhere" in remote.reply()["error"]
    remote.submit("d", "true", tasks="many")
    assert remote.reply()["error"] == "task count must be a integer >= 1"
    remote.submit("e", "sleep", "60", time_limit=0.5)
    assert remote.end("e")["exception"]["type"] == "timeout"


def test_a_job_of_the_sdk_has_an_instance_of_its_own(remote: Remote) -> None:
    text = "flux getattr size; flux resource list -s all -no '{nnodes}'; exit 3"
    remote.submit("a", "sh", "-c", text, nodes=1, instance=True, environment={"A": "1"}, time_limit=60)
    end = remote.end("a")
    said = "".join(text for stream, text in end["output"] if stream == "stdout")
    assert (end["status"], said) == (3 << 8, "1\n1\n")


def test_a_job_of_the_sdk_calls_a_function(remote: Remote) -> None:
    pytest.importorskip("cloudpickle")
    for key, function, arguments in (("a", pow, [2, 5]), ("b", int, ["x"])):
        call = work_of(function, arguments)
        remote.submit(key, *call.words, files=call.files)
        job = finished("f1", remote.end(key))
        if key == "a":
            # a client that comes again has it, too
            remote.submit(key, *call.words, files=call.files, again=True)
            again = remote.replies(key, "end")
            assert [one.value() for one in (job, finished("f1", again["end"]))] == [32, 32]
    assert job.started
    assert job.ended
    assert job.submitted
    assert (job.submitted <= job.started <= job.ended, bool(job.nodes), job.exit_code) == (True, True, 1)
    with pytest.raises(ValueError, match="invalid literal for int") as caught:
        job.value()
    assert isinstance(caught.value.__cause__, RemoteTraceback)


def test_the_sdk_program_cancels_and_lists_jobs_and_counts_nodes(remote: Remote) -> None:
    remote.ask("o", online=[2, 4])
    assert [remote.reply() for _ in range(2)] == [{"key": "o", "up": 2}, {"key": "o", "online": True}]
    remote.submit("a", "sleep", "600", nodes=1, tasks=1)
    found = remote.replies("a", "started")
    remote.ask("l", list=False)
    job = remote.reply()["jobs"][0]
    assert (job["id"], job["name"], job["state"], job["result"], job["exit_code"], job["tasks"]) == (
        found["id"],
        "sleep",
        "run",
        "",
        None,
        1,
    )
    remote.ask("a", cancel=found["id"])
    assert remote.end("a")["exception"]["type"] == "cancel"
    remote.ask("l", list=False)
    assert remote.reply() == {"key": "l", "jobs": []}
    remote.ask("l", list=True)
    job = remote.reply()["jobs"][0]
    assert (job["state"], job["result"]) == ("inactive", "canceled")
    assert remote.reply() == {"key": "l", "jobs": []}


def test_the_sdk_program_reports_why_jobs_wait(remote: Remote) -> None:
    remote.submit("a", "sleep", "600", nodes=2, tasks=2, exclusive=True)
    running = remote.replies("a", "started")["id"]
    remote.submit("b", "true")
    found = remote.replies("b", "waits")["waits"]
    assert found == "waits for resources that other jobs have"
    remote.ask("l", list=False)
    assert [job["waits"] for job in remote.reply()["jobs"]] == ["", found]
    remote.ask("a", cancel=running)
    # one may end before the other
    ends: dict[str, Any] = {}
    while len(ends) < 2:
        reply = remote.reply()
        ends |= {reply["key"]: reply["end"]} if "end" in reply else {}
    assert (ends["a"]["exception"]["type"], ends["b"]["status"]) == ("cancel", 0)


def test_the_sdk_program_does_not_run_a_job_twice_for_a_client_that_reconnects(remote: Remote) -> None:
    remote.submit("a", "echo", "once")
    name = remote.replies("a", "end")["id"]
    # its reply was lost
    remote.submit("a", "echo", "once", again=True)
    again = remote.replies("a", "end")
    assert again["id"] == name
    assert again["end"]["output"] == [["stdout", "once\n"]]
    remote.ask("a", watch=name, again=True)
    assert remote.end("a")["status"] == 0
    remote.ask("l", list=True)
    assert [job["id"] for job in remote.reply()["jobs"]] == [name]
    assert remote.reply() == {"key": "l", "jobs": []}
    remote.ask("any-b", watch=name, again=True)
    assert remote.end("any-b")["output"] == [["stdout", "once\n"]]
    remote.ask("any-c", watch="f1234", again=True)
    assert remote.reply() == {"key": "any-c", "lost": True}
    # the same id, in another life of the lead
    remote.ask("b", watch=name, again=True)
    assert remote.reply() == {"key": "b", "lost": True}
    remote.ask("c", cancel="f1234", again=True)
    assert remote.reply() == {"key": "c", "lost": True}
    remote.submit("d", "true", again=True, drop=True)
    assert remote.reply() == {"key": "d", "lost": True}
    # it was sent, and did not arrive
    remote.submit("e", "true", again=True)
    assert remote.end("e")["status"] == 0


#: Takes its time for a job named `slow`, and tells of it
VALIDATOR = """\
import pathlib, time
from flux.job.validator import ValidatorPlugin

class Validator(ValidatorPlugin):
    def validate(self, job):
        if job.jobspec["attributes"]["system"].get("job", {}).get("name") == "slow":
            (pathlib.Path(__file__).parent / "looks").touch()
            time.sleep(3)
"""


def test_a_job_that_flux_validates_when_its_program_is_killed_is_not_submitted_twice(
    flux_path: Path, tmp_path: Path
) -> None:
    flux, plugin = str(flux_path), tmp_path / "validator.py"
    plugin.write_text(VALIDATOR)
    (tmp_path / "ingest.toml").write_text(f'[ingest.validator]\nplugins = ["{plugin}"]\n')
    own = {**os.environ, "MINICLUSTER_HOME": str(tmp_path)}
    broker = [flux, "start", f"-o-c{tmp_path}", "sh", "-c", 'echo "$FLUX_URI"; exec cat']
    with subprocess.Popen(broker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own) as instance:
        assert instance.stdin
        assert instance.stdout
        own["FLUX_URI"] = instance.stdout.readline().strip()
        slow: dict[str, Any] = {"attributes": {"system.job.name": "slow"}}
        killed, remote = (Remote([flux, "python", "-c", program.BOOT], own) for _ in range(2))
        with killed.process:
            killed.submit("a", "true", **slow)
            until((tmp_path / "looks").exists)
            killed.process.kill()
        remote.submit("a", "true", again=True, **slow)
        found = remote.end("a")
        remote.submit("b", "true", **slow)
        remote.end("b")
        remote.ask("l", list=True)
        assert (found["status"], len(remote.reply()["jobs"])) == (0, 2)
        assert remote.reply() == {"key": "l", "jobs": []}
        remote.close()
        instance.stdin.close()


def test_a_job_of_an_earlier_queue_runs_again_only_if_it_may(remote: Remote) -> None:
    remote.submit("a", "true", again=True, age=3600)
    assert remote.replies("a", "lost") == {"lost": True}
    remote.submit("b", "true", again=True, age=3600, attributes={"user.minicluster.requeue": 1})
    assert remote.end("b")["status"] == 0


@pytest.mark.parametrize("loses", [False, True], ids=["told", "lost"])
def test_a_job_that_runs_again_has_the_end_of_its_copy(remote: Remote, flux_path: Path, *, loses: bool) -> None:
    """A copy has the attributes of its job, and names it; the note of a cancelled job names the copy."""

    def flux(*words: str) -> str:
        remote.submit(words[0], str(flux_path), *words)
        output: str = remote.end(words[0])["output"][0][1]
        return output.strip()

    remote.submit("a", "sleep", "600")
    first = remote.replies("a", "started")["id"]
    name = flux("job", "id", "--to=f58plain", first).strip()
    marks = ("--setattr=user.minicluster-sdk=a", f"--setattr=user.minicluster.continues={name}")
    copy = flux("submit", *marks, "echo", "again")
    if loses:
        remote.submit("x", str(flux_path), "job", "raise", "--type=exec", name, "node failure on broker x (rank 1)")
    else:
        remote.submit("x", str(flux_path), "cancel", "-m", f"minicluster: told: it runs again as {copy}", name)
    found: dict[str, Any] = {}
    while "end" not in found:
        reply = remote.reply()
        found |= reply if reply["key"] == "a" else {}
    assert (found["id"], found["end"]["output"]) == (copy, [["stdout", "again\n"]])


def output(remote: Remote, key: str, last: str, end: int = 0) -> tuple[str, int]:
    """Return the output that comes for a key, until a kind of reply or a byte, and the byte that it goes to."""
    text, at = "", 0
    while not end or at < end:
        reply = remote.reply()
        if reply["key"] != key:
            continue
        if last in reply:
            assert reply[last] is True
            break
        text, at = text + reply["text"][1], reply["to"]
    return text, at


@pytest.mark.parametrize("remote", [100], indirect=True)
def test_the_sdk_program_sends_what_a_job_prints_while_it_runs(remote: Remote, tmp_path: Path) -> None:
    free = tmp_path / "free"
    wait = f"while [ ! -e {free} ]; do sleep 0.05; done"
    remote.submit("a", "sh", "-c", f"echo one; echo two >&2; {wait}; echo three; seq 100 199; echo four")
    job = remote.reply()["id"]
    remote.ask("o", output=job, at=0)
    first, at = output(remote, "o", "over", 8)
    assert (sorted(first.split()), at) == (["one", "two"], 8)
    # a client that comes again has these bytes, and one that reads no more gets none
    remote.ask("p", output=job, at=4)
    assert output(remote, "p", "over", 8) == (first[4:], 8)
    remote.ask("p", output="")
    free.touch()
    text, at = output(remote, "o", "more")
    assert (text[:10], 100 <= at < 300) == ("three\n100\n", True)
    rest = ""
    while at < 419:
        remote.ask("o", output=job, at=at)
        more, at = output(remote, "o", "more", 419)
        rest += more
    assert text + rest == "".join(f"{line}\n" for line in ("three", *range(100, 200), "four"))
    remote.ask("a", watch=job, again=True)
    end: dict[str, Any] = {}
    while "end" not in end:
        end = remote.reply()
    kept = end["end"]["output"]
    dropped = "minicluster: the first 319 bytes of this output were dropped; lines() of the future has all of it\n"
    assert kept[0] == ["stderr", dropped]
    assert "".join(part for _, part in kept[1:]) == (text + rest)[-100:]
    remote.ask("n", output="f1234", at=0)
    assert output(remote, "n", "gone") == ("", 0)
    # of a job that waits, and never runs
    remote.submit("x", "sleep", "600", nodes=2)
    remote.replies("x", "started")
    remote.submit("w", "echo", "no")
    waiting = remote.replies("w", "id")["id"]
    remote.ask("q", output=waiting, at=0)
    remote.ask("w", cancel=waiting)
    assert output(remote, "q", "over") == ("", 0)


def test_the_sdk_program_reads_requests_while_its_client_reads_no_replies(remote: Remote) -> None:
    keys = [f"key-{number}" for number in range(5000)]
    for key in keys:
        remote.submit(key, "true", drop=True)
    assert [remote.reply() for _ in keys] == [{"key": key, "lost": True} for key in keys]


def test_a_client_that_reconnects_follows_all_of_its_jobs(remote: Remote) -> None:
    attributes = {"system.exec.test.run_duration": "1ms"}
    keys = {f"key-{number}" for number in range(1200)}
    for key in keys:
        remote.submit(key, "true", attributes=attributes)
    ends = gather(remote, keys)
    for key in keys:
        remote.submit(key, "true", again=True)
    assert gather(remote, keys) == ends
    remote.ask("l", list=True)
    assert [len(remote.reply()["jobs"]) for _ in range(3)] == [1000, 200, 0]


def gather(remote: Remote, keys: set[str]) -> dict[str, tuple[str, Any]]:
    """Return the ids and the ends of jobs."""
    ids: dict[str, str] = {}
    ends: dict[str, tuple[str, Any]] = {}
    while ends.keys() != keys:
        reply = remote.reply()
        if "id" in reply:
            assert reply["key"] not in ids, "two jobs for one key"
            ids[reply["key"]] = reply["id"]
        elif "end" in reply:
            ends[reply["key"]] = (ids[reply["key"]], reply["end"])
    return ends


def client(cluster: Cluster) -> "closing[Remote]":
    """Connect to the lead of a cluster."""
    lead = cluster.lead
    return closing(Remote(lead.entered(f"{MOUNT}/bin/flux", "python", "-c", program.BOOT), lead.environment))


def test_a_client_that_comes_late_has_the_ends_of_jobs_that_flux_has_forgotten(make: Make) -> None:
    kept, gone = 8, "minicluster: Flux no longer has the output of this job, or a part of it\n"
    cluster = make({"logging": {"quiet": True}, "state": {"claimName": "shared"}})
    cluster.keep_jobs(kept).start().wait_for_ready()
    jobs: dict[str, tuple[list[str], dict[str, Any]]] = {
        "ok": (["true"], {}),
        "fails": (["sh", "-c", "exit 3"], {}),
        # flux-sched 0.34 refuses less than a second
        "late": (["sleep", "60"], {"time_limit": 1}),
    }
    ids, before = {}, {}
    with client(cluster) as remote:
        for key, (command, options) in jobs.items():
            remote.submit(key, *command, **options)
            found = remote.replies(key, "end")
            ids[key], before[key] = found["id"], found["end"]
    for _ in range(2):
        # at once no more than the limit: else Flux may forget some before they are recorded
        cluster.lead.flux("submit", "--quiet", f"--cc=1-{kept}", "true")
        cluster.lead.flux("queue", "drain")
        until(lambda: len(cluster.lead.flux("jobs", "-an", "-o", "{id}").split()) == kept)
    cluster.lead.kill()
    cluster.start([0]).wait_for_ready()
    with client(cluster) as remote:
        for key, (command, options) in jobs.items():
            # the reply with its id may have been lost too; then it must not run again
            if key == "late":
                remote.ask(key, watch=ids[key], again=True)
            else:
                remote.submit(key, *command, again=True, **options)
            found = remote.replies(key, "end")
            assert found["id"] == ids[key]
            end, was = found["end"], before[key]
            assert (end["status"], end["output"]) == (was["status"], [["stderr", gone]])
            raised = was["exception"]
            assert end["exception"] == (raised and {key: raised[key] for key in ("type", "note")})
        remote.ask("any-fails", watch=ids["fails"], again=True)
        assert remote.end("any-fails")["status"] == 3 << 8
        remote.submit("other", "true", again=True, drop=True)
        assert remote.reply() == {"key": "other", "lost": True}
        remote.ask("l", list=True)
        first, last = remote.reply(), remote.reply()
        assert (first["more"], last) == (True, {"key": "l", "jobs": []})
        listed = [job for job in first["jobs"] if job["id"] in ids.values()]
        ends = [(job["name"], job["state"], job["result"], job["exit_code"], job["waits"]) for job in listed]
        assert ends == [
            ("true", "inactive", "completed", 0, ""),
            ("sh", "inactive", "failed", 3, ""),
            ("sleep", "inactive", "timeout", 142, ""),
        ]
        assert len(first["jobs"]) == len(jobs) + 2 * kept
