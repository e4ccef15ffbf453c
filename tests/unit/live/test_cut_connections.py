"""Connections that break while a command follows a job, and input that a command does not read."""

import json
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest
from live_kubectl import AWAY, Kubectl, say
from minicluster.exec.found_again import attach_options
from minicluster.exec.written import KubectlWords, Written

from tools.clients import Done, until

#: What a lead does: a job prints a and b, and c when `go` is there
FLUX = r"""
cd "${0%/*}/../.."
printf '%s\n' "$*" >>words
prints() { printf 'a\nb'; echo err >&2; touch printed; until [ -e go ]; do sleep 0.02; done; printf '\nc\n'; exit 3; }
# a broker that dies takes one command with it
case $1 in
run | batch) [ ! -e dies ] || { rm dies; touch died; echo a; echo lost >&2; exit "$(cat code)"; } ;;
esac
case $1 in
run | job) prints ;;
submit) [ ! -e slow ] || sleep 0.5; exit 4 ;;
batch) case $* in *here.sh) exit 1 ;; esac; echo f1; touch printed; until [ -e go ]; do sleep 0.02; done ;;
python)
  read -r program
  case $* in
  *" broker") [ ! -e died ] || new=true; rm -f died; echo "{\"is_new\": ${new:-false}}" ;;
  *" find"* | *" taken") cat job ;;
  *follow) prints ;;
  esac ;;
esac
"""
FOUND = '{"id": "f1", "cancelled": false, "input": [0, true]}'
CUT_INPUT = '{"id": "f1", "cancelled": false, "input": [2, true]}'


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    made = Kubectl(tmp_path)
    made.flux(FLUX)
    relay = Path(__file__).parents[1] / "relay.py"
    (tmp_path / "relay").write_text(f'exec {sys.executable} -IS {relay} "$folder" "$@"')
    yield made
    # a job that nobody follows any more would go on for ever
    (tmp_path / "go").touch()


def cut(kubectl: Kubectl, *words: str, job: str = "{}", times: int = 1, stdin: str = "", keeps: bool = False) -> Done:
    """Run a command whose connection breaks as soon as its job has printed something, which a file tells."""
    folder = kubectl.folder
    (folder / "job").write_text(job)
    with kubectl.start(*words) as process:
        assert process.stdin
        process.stdin.write(stdin)
        process.stdin.flush()
        for _ in range(times):
            until((folder / "printed").exists)
            if not keeps:
                (folder / "printed").unlink()
            (folder / "cut").touch()
            until(lambda: not (folder / "cut").exists())
        (folder / "go").touch()
        out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


@pytest.mark.parametrize("times", [1, 2])
def test_the_output_of_a_job_goes_on_where_it_was(kubectl: Kubectl, times: int) -> None:
    assert cut(kubectl, "output", "mini", "f1", "-f", times=times) == Done(3, "a\nb\nc\n", "err\n")


@pytest.mark.parametrize(("times", "is_read"), [(1, True), (2, False)])
def test_flux_run_attaches_to_its_job_again(kubectl: Kubectl, times: int, is_read: bool) -> None:
    job = f'{{"id": "f1", "cancelled": false, "input": [0, {str(is_read).lower()}]}}'
    done = cut(kubectl, "flux", "mini", "--", "run", "-lN2", "x", "-u", job=job, times=times)
    assert done == Done(3, "a\nb\nc\n", "err\n")
    words = (kubectl.folder / "words").read_text().splitlines()
    attach = f"job attach --label-io {'--read-only ' if is_read else ''}f1"
    assert [line for line in words if not line.startswith(("run", "python"))] == [attach] * times


@pytest.mark.parametrize(
    ("words", "again"),
    [
        ("attach -l f0", "attach -l --read-only f1"),
        ("status f0 f2", "status f0 f2"),
        ("wait-event f0 finish", "wait-event f0 finish"),
        ("eventlog f0", "eventlog f0"),
    ],
)
def test_a_command_that_follows_a_job_goes_on_with_the_one_that_runs_it_again(
    kubectl: Kubectl, words: str, again: str
) -> None:
    found = "{}" if words == again else FOUND
    assert cut(kubectl, "flux", "mini", "--", "job", *words.split(), job=found) == Done(3, "a\nb\nc\n", "err\n")
    asked = (kubectl.folder / "words").read_text().splitlines()
    assert [line for line in asked if line.startswith("job")] == [f"job {words}", f"job {again}"]


def test_a_script_that_is_here_alone_is_said_to_be_looked_for_on_the_lead(kubectl: Kubectl) -> None:
    script = kubectl.folder / "here.sh"
    script.touch()
    way = "`minicluster flux mini -- batch OPTIONS <FILE` sends a file from here"
    told = f"minicluster: {script} was looked for on the lead: {way}\n"
    assert kubectl.run("flux", "mini", "--", "batch", "-N2", str(script)) == Done(1, "", told)


@pytest.mark.parametrize(("option", "again"), [("--watch", "job attach --read-only f1"), ("--wait", "job status f1")])
def test_a_submission_that_waits_goes_on_with_its_job(kubectl: Kubectl, option: str, again: str) -> None:
    taken = '{"ids": ["f1"], "id": "f1", "input": [0, false]}'
    assert cut(kubectl, "flux", "mini", "--", "batch", option, "x.sh", job=taken) == Done(3, "f1\na\nb\nc\n", "err\n")
    assert (kubectl.folder / "words").read_text().splitlines()[-1] == again


def test_a_job_that_is_attached_to_is_lost_with_its_lead(kubectl: Kubectl) -> None:
    done = cut(kubectl, "flux", "mini", "--", "job", "attach", "f1", job='{"lost": true}')
    why = "job f1 is lost: the lead was replaced, and its queue was not kept"
    assert done == Done(1, "a\nb", f"err\nminicluster: {why}\n")


@pytest.mark.parametrize(
    ("words", "job", "shows"),
    [
        ("output mini f1 -f", "f1", "`minicluster output mini f1 -f` shows its output"),
        ("flux mini -- job attach f1", "f1", "`minicluster flux mini -- job attach f1` shows its output"),
        ("flux mini -- run x", "", ""),
    ],
)
def test_a_job_that_can_not_be_followed_any_more_goes_on_and_a_line_says_how_to_end_it(
    kubectl: Kubectl, words: str, job: str, shows: str
) -> None:
    kubectl.bears_no_outage()
    with kubectl.start(*words.split()) as process:
        assert process.stderr
        assert process.stdout
        begin = process.stdout.read(3), process.stderr.readline()
        kubectl.has(pods=AWAY)
        (kubectl.folder / "cut").touch()
        out, err = process.communicate(timeout=60)
    way = f"job f1 goes on: {shows}" if job else "what was submitted goes on: `minicluster flux mini -- jobs` shows it"
    end = f"`minicluster flux mini -- cancel {job or 'ID'}` ends it"
    said = [f"{AWAY}: trying again for 0 s", f"{AWAY}: {way}, {end}"]
    assert (begin, Done(process.returncode, out, err)) == (("a\nb", "err\n"), Done(1, "", say(*said)))


def test_flux_run_whose_job_was_not_submitted_runs_again(kubectl: Kubectl) -> None:
    assert cut(kubectl, "flux", "mini", "--", "run", "x", job="{}").code == 3
    verbs = [line.split()[0] for line in (kubectl.folder / "words").read_text().splitlines()]
    # a lead that is slow is asked again
    assert [verb for verb, _ in groupby(verbs)] == ["run", "python", "run"]


#: The wall clock jumps when the machine wakes; the monotonic one stood
SLEEP = """import time
from pathlib import Path
now = time.time
time.time = lambda: now() + 3600 * Path({!r}, "printed").exists()
"""


def test_a_job_is_found_after_the_laptop_has_slept(kubectl: Kubectl) -> None:
    kubectl.begin_with(SLEEP.format(str(kubectl.folder)))
    assert cut(kubectl, "flux", "mini", "--", "run", "x", job=FOUND, keeps=True).code == 3
    asked = next(line for line in (kubectl.folder / "words").read_text().splitlines() if line.endswith("find"))
    assert float(asked.split()[-2]) >= 3600


BROKEN = "error reading from error stream: next reader: read tcp 10.0.0.1:6443: read: connection reset by peer"


#: What saves the jobs before their ids are shown
SAVED = "kvs put --sync minicluster.saved=1"
LOST = (
    "minicluster: the lead was lost with its queue, and what was submitted may have run: look before you run the "
    "command again; state.capacity keeps the queue\n"
)


@pytest.mark.parametrize(
    ("verb", "job", "code", "expected"),
    [
        ("run", FOUND, "1", Done(3, "a\nb\nc\n", "lost\nerr\n")),
        ("batch", '{"ids": ["f1", "f2"]}', "137", Done(0, "f1\n", "")),
        ("batch", "{}", "1", Done(0, "f1\n", "")),
    ],
    ids=["run", "taken", "not taken"],
)
def test_what_flux_says_when_its_broker_dies_is_no_answer(
    kubectl: Kubectl, verb: str, job: str, code: str, expected: Done
) -> None:
    for name, text in {"dies": "", "go": "", "job": job, "code": code}.items():
        (kubectl.folder / name).write_text(text)
    assert kubectl.run("flux", "mini", "--", verb, "x") == expected


def test_a_failure_that_is_no_death_of_the_broker_is_passed_on(kubectl: Kubectl) -> None:
    kubectl.flux(FLUX.replace("touch died", ":"))
    (kubectl.folder / "dies").touch()
    (kubectl.folder / "code").write_text("1")
    assert kubectl.run("flux", "mini", "--", "batch", "x") == Done(1, "a\n", "lost\n")


@pytest.mark.parametrize("is_marked", [False, True])
@pytest.mark.parametrize(
    ("verb", "once", "twice"),
    [
        ("run", Done(1, "a\nb", f"err\n{LOST}"), Done(3, "a\nb\nc\n", "err\n")),
        # an id is printed when the job is saved
        ("batch", Done(1, "", LOST), Done(0, "f1\n", "")),
    ],
)
def test_what_was_lost_with_its_queue_runs_again_only_if_it_may(
    kubectl: Kubectl, verb: str, once: Done, twice: Done, *, is_marked: bool
) -> None:
    mark = f"--setattr=user.minicluster.requeue={is_marked:d}"
    done = cut(kubectl, "flux", "mini", "--", verb, mark, "x", job='{"lost": true}')
    assert done == (twice if is_marked else once)
    lines = (kubectl.folder / "words").read_text().splitlines()
    assert [line.split()[0] for line in lines if line != SAVED] == [verb, "python", *([verb] if is_marked else [])]


@pytest.mark.parametrize(
    ("words", "ids", "expected"),
    [
        (["x.sh"], ["f1"], Done(0, "f1\n", "")),
        (["x.sh"], [], Done(0, "f1\n", "")),
        (
            ["--cc=1-4", "x.sh"],
            ["f1", "f2"],
            Done(1, "f1\nf2\n", f"minicluster: {BROKEN}: Flux has taken 2 jobs, and perhaps not all: look at them\n"),
        ),
    ],
    ids=["taken", "not taken", "several"],
)
def test_a_job_is_submitted_once_though_the_connection_broke(
    kubectl: Kubectl, words: list[str], ids: list[str], expected: Done
) -> None:
    assert cut(kubectl, "flux", "mini", "--", "batch", *words, job=json.dumps({"ids": ids})) == expected
    lines = (kubectl.folder / "words").read_text().splitlines()
    assert [line.split()[0] for line in lines if line != SAVED] == ["batch", "python", *([] if ids else ["batch"])]
    assert len({line.split()[1] for line in lines if line.startswith("batch --setattr=user.minicluster-client=")}) == 1


def test_a_job_whose_input_was_cut_is_an_error_that_says_how_to_end_it(kubectl: Kubectl) -> None:
    done = cut(kubectl, "flux", "mini", "--", "run", "x", job=CUT_INPUT, stdin="input")
    way = (
        "job f1 goes on: `minicluster flux mini -- job attach f1` shows its output, "
        "`minicluster flux mini -- cancel f1` ends it; run the command again"
    )
    why = "the connection broke when job f1 had got 2 bytes of its input, which is cut there"
    assert done == Done(1, "a\nb", f"err\nminicluster: {why}: {way}\n")


def test_a_command_that_follows_nothing_says_that_it_may_go_on(kubectl: Kubectl) -> None:
    kubectl.flux('touch "${0%/*}/../../printed"; sleep 30')
    done = cut(kubectl, "flux", "mini", "--", "queue", "drain")
    how = "the connection broke, and the command may go on: look before you run it again"
    assert done == Done(1, "", f"minicluster: {BROKEN}: {how}\n")


@pytest.mark.parametrize("is_slow", [False, True])
def test_the_end_of_a_command_that_does_not_read_its_input_is_ours(kubectl: Kubectl, is_slow: bool) -> None:
    if is_slow:
        (kubectl.folder / "slow").touch()
    assert kubectl.run("flux", "mini", "--", "submit", stdin="x" * (4 << 20)) == Done(4, "", "")


def test_the_end_of_a_command_is_ours_while_its_input_stays_open(kubectl: Kubectl) -> None:
    with kubectl.start("flux", "mini", "--", "submit") as process:
        assert process.wait(60) == 4


# what kubectl writes ------------------------------------------------------------------------------------------

LOG = b'E1126 22:44:04.779395   4711 v2.go:130] "Waiting for server" err="reset"\n'
BEGIN, END = b"minicluster-process 12\n", b"\x1eminicluster-end 7\n"
#: What comes, what the command has written, its code, and kubectl's own words
SAID = {
    "an end": (BEGIN + b"why\nno line" + END + b"command terminated with exit code 7\n", b"why\nno line", 7, b""),
    "nothing": (BEGIN + END, b"", 7, b""),
    "the log of kubectl": (b"W" + LOG[1:] + BEGIN + b"a\n" + LOG + b"50%" + LOG + LOG + END, b"a\n50%", 7, b""),
    "the log of another": (BEGIN + LOG.replace(b"4711", b"4712") + END, LOG.replace(b"4711", b"4712"), 7, b""),
    "a cut": (BEGIN + b"a\n" + LOG + b"error: unexpected EOF\n", b"a\n", None, b"error: unexpected EOF\n"),
    "errors of the command": (BEGIN + b"error: mine\n\n" + END, b"error: mine\n\n", 7, b""),
    "no begin": (b"error: no such pod\n", b"", None, b"error: no such pod\n"),
    "bars": (BEGIN + b"\r10%\r20%" + END, b"\r10%\r20%", 7, b""),
}


@pytest.mark.parametrize("case", SAID)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_words_of_kubectl_are_told_from_those_of_the_command(case: str, size: int) -> None:
    data, written, code, own = SAID[case]
    words = KubectlWords(4711)
    found = b"".join([words.take(data[at : at + size]) for at in range(0, len(data), size)]) + words.end()
    assert (found, words.code, words.own) == (written, code, own)


def test_the_code_that_kubectl_tells_is_not_the_end_of_the_command() -> None:
    words = KubectlWords(4711)
    words.take(BEGIN + b"command terminated with exit code 137\n")
    assert (words.end(), words.code, words.failed) == (b"", None, 137)


def test_what_is_held_is_the_command_s_when_kubectl_goes_on() -> None:
    words = KubectlWords(4711)
    assert words.take(BEGIN + b"a\nerror: mine\n$ ") == b"a\n"
    assert (words.holds, words.release(), words.holds) == (True, b"error: mine\n$ ", False)


def test_what_was_written_before_is_left_out() -> None:
    written = Written()
    assert written.new(0, b"abc") == b"abc"
    written.again()
    assert [written.new(0, part) for part in (b"ab", b"cd", b"e")] == [b"", b"d", b"e"]
    written.again()
    assert [written.new(0, part) for part in (b"abcd", b"ef")] == [b"", b"f"]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("run hostname -l", ""),
        ("run -l hostname", "--label-io"),
        ("run -n 4 -lu -N2 x", "--label-io --unbuffered"),
        ("run -vln4 x", "--label-io"),
        ("run -n4l x", ""),
        ("run --ntasks 4 --label-io --env=A=1 -- x -u", "--label-io"),
        ("run --setopt -l x", ""),
        ("run -o -l --exclusive -u x", "--unbuffered"),
    ],
)
def test_a_job_is_shown_again_as_flux_run_was_told(words: str, options: str) -> None:
    assert attach_options(words.split()) == options.split()
