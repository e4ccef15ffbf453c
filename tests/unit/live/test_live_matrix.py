"""``minicluster run --sizes``, with stand-ins of kubectl and Helm."""

import csv
import json
import re
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from forks import Forked
from live_kubectl import Kubectl, say
from minicluster.cluster.states import END_REASONS
from minicluster.experiments import results
from minicluster.render import constants
from minicluster.render.stream import API_GROUP
from screens import look
from status_samples import job

from tools.clients import Done, until

#: Helm notes its words, and renders the values file `spec` with the size that it is given
HELM = r"""folder=${0%/*}
case $1 in
template) for word; do case $word in
  --set-json=size=*) size=${word##*=} ;;
  --set-json=tasks=*) tasks=${word##*=} ;;
  esac; done
  sed "s/SIZE/$size/g; s/TASKS/${tasks:-0}/" "$folder/document"; exit ;;
esac
[ "$1" != version ] || { echo v4.3.1; exit; }
printf '%s\n' "$2" >>"$folder/helm.asked"
case $2 in
install) touch "$folder/release"; [ ! -e "$folder/refusal" ] || { cat "$folder/refusal" >&2; exit 1; } ;;
list) [ ! -e "$folder/release" ] || echo mini ;;
uninstall) rm "$folder/release" ;;
esac"""
#: Flux notes its words. A job's output is its words, and it ends with the exit code in the file `code`
FLUX = r"""folder=${0%/home/*}
case $1 in
submit) shift
  [ ! -e "$folder/no-job" ] || { echo "flux-submit: ERROR: $(cat "$folder/no-job")" >&2; exit 1; }
  echo "$@" >>"$folder/submitted"; echo "ƒ$(wc -l <"$folder/submitted")" ;;
job) case $2 in
  attach) tail -n 1 "$folder/submitted"; echo problem >&2
    [ ! -e "$folder/hangs" ] || { touch "$folder/attached"; exec sleep 300; }
    [ ! -e "$folder/break" ] || { rm "$folder/break"; exit 1; }
    touch "$folder/over"; exit "$(cat "$folder/code")" ;;
  eventlog) printf '{"timestamp": 1.0, "name": "submit", "context": {"note": "a\342\200\250b\302\205c"}}\n'
    echo '{"timestamp": 4.0, "name": "clean"}' ;;
  esac ;;
python) count=$(wc -l <"$folder/submitted")
  state=RUN; [ ! -e "$folder/over" ] || state=INACTIVE
  rm -f "$folder/over"
  purged='{"purged": 0, "earlier": 0}'
  [ ! -e "$folder/lost" ] || { echo "$purged"; exit 0; }
  printf '{"id": "f%d", "state": "%s", "result": "COMPLETED", "exit_code": %d, ' "$count" $state "$(cat "$folder/code")"
  echo '"nodes": "n0", "ntasks": 2, "t_submit": 1.0, "t_run": 2.0, "t_cleanup": 3.5, "t_inactive": 4.0}'
  echo "$purged" ;;
cancel) echo "$@" >>"$folder/cancelled" ;;
esac"""
WORK = ("--", "work", "a b")


class Lab(Kubectl):
    """The stand-ins, and a folder for results."""

    needs = ("bokeh.embed", "bokeh.plotting")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.tool("helm", HELM)
        self.flux(FLUX)
        self.set_up()
        self.results = folder / "results"

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "MINICLUSTER_HOME": str(self.folder / "home")}

    def set_up(self, code: int = 0, **values: Any) -> None:
        """Set the exit code of jobs, and the values."""
        (self.folder / "code").write_text(str(code))
        runner = {"command": ["work", "a b"]}
        spec = {
            **constants.default_values(),
            "size": "SIZE",
            "maxSize": "SIZE",
            "tasks": "TASKS",
            "containers": [runner],
            **values,
        }
        text = json.dumps({key: value for key, value in spec.items() if key != "global"})
        text = text.replace('"SIZE"', "SIZE").replace('"TASKS"', "TASKS")
        document = {"apiVersion": f"{API_GROUP}/v1", "kind": "MiniCluster", "metadata": {"name": "mini"}}
        lines = "".join(f"{key}: {json.dumps(value)}\n" for key, value in document.items())
        (self.folder / "document").write_text(f"---\n{lines}spec: |-\n  {text}\n")

    def matrix(self, *words: str, sizes: str = "1,2", name: str = "mini") -> Done:
        """Run a matrix of two iterations, whose page is not drawn."""
        with patch.object(results, "draw_page"):
            return self.run_here(*self.line(*words, sizes=sizes, name=name))

    def line(self, *words: str, sizes: str = "1,2", name: str = "mini") -> list[str]:
        options = ["--name", name, "--namespace", "lab", "--sizes", sizes, "--iterations", "2"]
        return ["run", *options, "--output", str(self.results), *words, *WORK]

    def noted(self, name: str) -> list[str]:
        """Return the lines of a file of the stand-ins."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def rows(self) -> list[list[str]]:
        """Return the rows of the table, without its head."""
        with (self.results / "results.csv").open() as file:
            return list(csv.reader(file))[1:]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def lines(size: int, code: int = 0) -> list[str]:
    runs = [f"size {size}, iteration {n}: exit code {code} after 1.500 s" for n in (1, 2)]
    return [f"installed mini-{size} in namespace lab", *runs]


NO_PLOT = "no plot: matplotlib is not installed"


def is_without_matplotlib() -> bool:
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        return True
    return False


def said(*text: str, folder: Path, good: int = 4, runs: int = 4) -> str:
    """Return what a matrix says that comes to its end."""
    end = f"{good} of {runs} runs have ended with exit code 0, see {folder}"
    return say(*text, *([NO_PLOT] if is_without_matplotlib() else []), end)


def test_a_matrix_runs_each_size_and_leaves_its_results(lab: Lab) -> None:
    assert lab.run(*lab.line()) == Done(0, "", said(*lines(1), *lines(2), folder=lab.results))
    assert lab.noted("helm.asked") == ["install", "list", "uninstall"] * 2
    assert lab.noted("submitted") == ["-N 1 work a b"] * 2 + ["-N 2 work a b"] * 2
    assert not lab.noted("cancelled")
    row = ["2", "f3", "1.0", "2.0", "3.5", "1.5", "0", "n0", *[""] * 7]
    assert lab.rows()[2] == ["2", "1", *row]
    run = lab.results / "size-2" / "iteration-1"
    assert (run / "output.txt").read_text() == "-N 2 work a b\nproblem\n"
    record = json.loads((run / "record.json").read_text())
    assert [event["name"] for event in record["events"]] == ["submit", "clean"]
    names = {path.name for path in lab.results.rglob("*") if path.is_file()}
    files = {"output.txt", "record.json", "values.yaml", "given.yaml", "results.csv", "report.html"}
    assert names - {"wall-time.png"} == files
    given = {"size": 2, "maxSize": 2, "tasks": 0, "containers": [{"command": ["work", "a b"]}]}
    assert yaml.safe_load((lab.results / "size-2" / "given.yaml").read_text()) == given


def test_a_matrix_shows_on_a_terminal_how_far_it_is(lab: Lab) -> None:
    lab.flux(FLUX.replace("submit) shift", "submit) shift; sleep 0.5"))
    seen = look(lab.line(), lab.environment, start=partial(Forked, needs=lab.needs))
    assert [line.removeprefix("minicluster: ") for line in seen.last[:6]] == [*lines(1), *lines(2)]
    lives = [shown[-1] for shown in seen.screens if shown and " 0:0" in shown[-1]]
    # the bar of a half is ten columns long
    assert any(line.startswith(f"run 3 of 4: size 2, iteration 1 {'━' * 10}╺") and "left" in line for line in lives)
    assert {line.split(" ")[0] for line in lives} == {"installing", "run", "removing"}


def test_a_matrix_with_all_its_records_runs_nothing(lab: Lab) -> None:
    lab.matrix("--set", "x=1", sizes="1")
    (lab.folder / "helm.asked").unlink()
    there = f"size 1: 2 of 2 runs are in {lab.results}"
    assert lab.matrix(sizes="1") == Done(0, "", said(there, good=2, runs=2, folder=lab.results))
    assert lab.noted("helm.asked") == []
    (lab.results / "size-1" / "iteration-2" / "record.json").write_text("{")
    done = lab.matrix(name="other")
    assert done.code == 0
    assert lab.noted("submitted") == ["-N 1 work a b"] * 3 + ["-N 2 work a b"] * 2
    assert [row[:2] for row in lab.rows()] == [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]]
    assert "minicluster: installed other-1 in namespace lab" in done.err


def test_a_folder_of_another_matrix_is_refused(lab: Lab) -> None:
    lab.matrix()
    lab.set_up(containers=[{"command": ["work", "c"]}])
    for sizes, size in (("2", 2), ("3", 1)):
        message = f"{lab.results}/size-{size}/values.yaml has another containers[0].command[1]: "
        message += "give the values of before, or another --output"
        assert lab.matrix(sizes=sizes) == Done(2, "", say(message))
    assert len(lab.noted("submitted")) == 4


def test_a_run_that_fails_is_recorded_and_the_next_one_begins(lab: Lab) -> None:
    lab.set_up(7)
    assert lab.matrix() == Done(1, "", said(*lines(1, 7), *lines(2, 7), good=0, folder=lab.results))
    assert [row[8] for row in lab.rows()] == ["7"] * 4
    again = lab.matrix()
    assert (again.code, len(lab.noted("submitted"))) == (1, 4)


def test_a_size_that_fails_is_told_and_the_next_one_begins(lab: Lab) -> None:
    (lab.folder / "no-job").write_text("unsatisfiable request")
    installed = [f"installed mini-{n} in namespace lab" for n in (1, 2)]
    removing = ["removing mini-1", "removing mini-2"]
    why = "can't be submitted: flux-submit: ERROR: unsatisfiable request"
    ends = [f"size {n}: the job of mini-{n} {why}" for n in (1, 2)]
    expected = [line for lines in zip(installed, removing, ends, strict=True) for line in lines]
    assert lab.matrix() == Done(1, "", said(*expected, good=0, folder=lab.results))
    assert lab.noted("cancelled") == ["cancel --all"] * 2
    assert lab.rows() == []


def test_a_refusal_of_helm_ends_the_matrix(lab: Lab) -> None:
    (lab.folder / "refusal").write_text("Error: INSTALLATION FAILED: no quota\n")
    assert lab.matrix() == Done(1, "", say("helm install mini-1: INSTALLATION FAILED: no quota"))
    assert lab.noted("helm.asked") == ["install", "list", "uninstall"]


def test_an_output_that_breaks_off_is_copied_anew(lab: Lab) -> None:
    (lab.folder / "break").touch()
    assert lab.matrix(sizes="1").code == 0
    assert (lab.results / "size-1" / "iteration-1" / "output.txt").read_text() == "-N 1 work a b\nproblem\n"
    assert len(lab.noted("submitted")) == 2


def test_a_job_that_the_lead_no_longer_knows_is_lost(lab: Lab) -> None:
    (lab.folder / "lost").touch()
    done = lab.matrix(sizes="1")
    why = "size 1: job f1 of mini-1 is lost: the lead was replaced, and its queue was not kept"
    assert (done.code, done.err.splitlines()[2]) == (1, f"minicluster: {why}")


def test_a_lead_that_has_ended_fails_its_size(lab: Lab) -> None:
    lab.has(job=job(end=("Failed", "DeadlineExceeded")))
    done = lab.matrix(sizes="1")
    how = f"minicluster: size 1: mini-1 has ended: Failed: {END_REASONS['DeadlineExceeded']}"
    assert (done.code, done.err.splitlines()[2]) == (1, how)


def test_the_timeout_is_for_each_size(lab: Lab) -> None:
    (lab.folder / "hangs").touch()
    begin = time.monotonic()
    done = lab.matrix("--timeout", "3s")
    assert time.monotonic() - begin < 30
    late = "in namespace lab: gave up after 3 s"
    assert [line for line in done.err.splitlines() if "gave up" in line] == [
        f"minicluster: size {n}: mini-{n} {late}" for n in (1, 2)
    ]
    assert (done.code, lab.rows()) == (1, [])
    assert lab.noted("helm.asked") == ["install", "list", "uninstall"] * 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run_and_the_matrix_goes_on_later(lab: Lab, number: int) -> None:
    assert lab.matrix(sizes="1").code == 0
    (lab.folder / "hangs").touch()
    with lab.start(*lab.line()) as process:
        until((lab.folder / "attached").exists)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    there = f"size 1: 2 of 2 runs are in {lab.results}"
    kept = f"{lab.results} has the runs that have ended: the same command goes on with the others"
    assert (process.returncode, err) == (
        128 + number,
        say(there, "installed mini-2 in namespace lab", "removing mini-2", kept),
    )
    assert lab.noted("cancelled") == ["cancel --all"]
    assert not (lab.folder / "release").exists()
    assert len(lab.rows()) == 2
    (lab.folder / "hangs").unlink()
    assert lab.matrix().code == 0
    assert len(lab.rows()) == 4


def test_a_plot_is_drawn_with_matplotlib(lab: Lab) -> None:
    pytest.importorskip("matplotlib")
    lab.matrix()
    assert (lab.results / "wall-time.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_has_the_times_by_size(lab: Lab) -> None:
    lab.run(*lab.line())
    page = (lab.results / "report.html").read_text()
    labels = [re.escape(json.dumps(label)) for label in ("wall time, s", "speed-up", "efficiency")]
    assert all(re.search(label, page) for label in labels)
    assert not re.search(r'<(script|link)[^>]* (src|href)="', page)


#: Our programs that bring a folder and its results
BRINGING = """if [ "$1" = python ]; then case ${4-} in "" | /*) shift; exec python3 "$@" ;; esac; fi
for word; do case $word in --cwd=*) printf result >"${word#*=}/result.txt" ;; esac; done
"""


def test_run_has_a_folder_of_this_machine_and_brings_results_back_when_the_work_failed(
    lab: Lab, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "train.py").write_text("text")
    lab.set_up(7, size=2, tasks=0)
    lab.flux(BRINGING + FLUX)
    options = ("--upload", str(mine), "--fetch", "*.txt")
    done = lab.run("run", "--name", "mini", "--namespace", "lab", "-N", "2", *options, *WORK)
    place = next((tmp_path / "home/uploads").glob("*/mine"))
    texts = ("installed mini in namespace lab", f"copied {mine} to mini-0:{place}, 1 file, 4 bytes")
    texts += ("job f1 of mini has ended (exit code 7)", f"fetched 1 file to {mine}")
    assert done == Done(7, f"--cwd={place} -N 2 work a b\nproblem\n", say(*texts))
    assert (mine / "result.txt").read_text() == "result"
    assert lab.noted("helm.asked") == ["install", "list", "uninstall"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sizes", "2,4"), "--sizes needs --output: name the folder for the results"),
        (("--output", "x"), "--output needs --sizes: give the sizes to run at, such as 2,4,8"),
        (("--iterations", "2"), "--iterations needs --sizes: give the sizes to run at, such as 2,4,8"),
        (
            ("-N", "2", "-n", "research"),
            "Invalid value for '-n' / '--tasks': 'research' is not a number of tasks; --namespace gives the "
            "namespace; see `minicluster run --help`",
        ),
        (("--sizes", "2", "--output", "x", "-N", "2"), "--sizes has the numbers of nodes: drop --nodes"),
        (
            ("--sizes", "2", "--output", "x", "--keep"),
            "--keep is for a single run: with --sizes each MiniCluster is removed before the next",
        ),
        *(
            (
                ("--sizes", sizes, "--output", "x"),
                f"Invalid value for '--sizes': '{sizes}' is not a list of sizes: write different numbers with commas, "
                "as 2,4,8; see `minicluster run --help`",
            )
            for sizes in ("0", "2,", "a", "2,2", "2 4")
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(lab: Lab, words: tuple[str, ...], message: str) -> None:
    assert lab.run("run", *words, *WORK) == Done(2, "", say(message))
    assert not lab.noted("helm.asked")
