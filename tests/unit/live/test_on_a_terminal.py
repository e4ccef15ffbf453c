"""Commands as a person sees them: on a terminal of 80 columns, with stand-ins of kubectl."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forks import Forked
from live_kubectl import WAITS, Kubectl, lead
from minicluster.status.listing import table as list_table
from minicluster.status.reported import table as job_table
from minicluster.status.table import table as status_table
from screens import Seen, look
from status_samples import BUSY, SETTINGS, UNSCHEDULABLE, ended, flux, job, show

MARKUP = "[bold red]x[/] \x1b[31m"


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    return Kubectl(tmp_path)


def run(kubectl: Kubectl, *words: str, columns: int = 80) -> Seen:
    return look(words, kubectl.environment, columns, start=Forked)


def test_a_wait_shows_where_it_is_on_one_line_and_its_end(kubectl: Kubectl) -> None:
    waits = {"items": [lead(kubectl.folder, WAITS)]}
    kubectl.has(
        pods_1={"items": []},
        pods_2={"items": [lead(kubectl.folder, UNSCHEDULABLE)]},
        **{f"pods_{n}": waits for n in range(3, 9)},
    )
    kubectl.tool("sh", f"echo '{json.dumps([SETTINGS, flux(online='0-2')])}'")
    seen = run(kubectl, "wait", "mini", "--timeout", "60s")
    assert (seen.code, seen.last) == (0, ["minicluster: mini: Running"])
    assert seen.colours["green"] == "mini: Running"
    firsts = [shown[0].rpartition(" ")[0].strip() for shown in seen.screens if shown]
    assert list(dict.fromkeys(firsts))[-2:] == [
        "mini: Starting: waits for the quorum, 3 of 4 nodes are up",
        "minicluster: mini:",
    ]
    assert firsts[0].startswith("mini: Starting: the lead is Pending: Unschedulable")
    # one line, unless the reason is longer than the terminal is wide
    assert all(len(shown) == 1 for shown in seen.screens if shown and "quorum" in shown[0])


def test_the_log_of_the_work_has_the_screen_for_itself(kubectl: Kubectl) -> None:
    over = {"items": [lead(kubectl.folder, ended(7))]}
    ready = {"items": [lead(kubectl.folder)]}
    kubectl.has(
        **{f"pods_{n}": ready for n in (1, 2, 3)}, pods=over, job_1=job(), job_2=job(), job=job(end=("Failed", "x"))
    )
    (kubectl.folder / "logs").write_text("2030-01-01T12:00:01.5Z out [bold]put\n")
    seen = run(kubectl, "logs", "mini", "-f")
    assert seen.last[0] == "out [bold]put"
    assert [line for line in seen.last if "Running" in line] == []
    assert len(seen.last) == 2
    assert seen.last[1].startswith("minicluster: mini has ended")
    assert any(shown[-1].startswith("mini: Running 0:0") for shown in seen.screens if shown)


def test_a_copy_has_a_bar_and_says_what_it_did(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "in.lj").write_bytes(b"x" * 3_000_000)
    kubectl.tool("tar", "head -c 1000000 >/dev/null; sleep 0.6; cat >/dev/null")
    seen = run(kubectl, "copy", f"{tmp_path}/in.lj", f"mini:{tmp_path}/", columns=300)
    said = f"minicluster: copied {tmp_path}/in.lj to mini-0:{tmp_path}/in.lj, 3.0 MB"
    assert (seen.code, "".join(seen.last)) == (0, said)
    assert any("━" in line and line.startswith("copying") for shown in seen.screens for line in shown)


def test_an_error_is_red(kubectl: Kubectl) -> None:
    kubectl.has(job=None, pods={"items": []})
    seen = run(kubectl, "status", "mini")
    assert seen.code == 1
    assert " ".join(seen.last).removeprefix("minicluster: ").startswith(seen.colours["red"].split(":")[0])


JOBS: list[dict[str, Any]] = [
    {
        "id": f"ƒ2a9RQ8K{n}",
        "name": name,
        "state": state,
        "result": result,
        "exit_code": code,
        "nodes": "demo-[0-3,5-9],demo-gpu-[0-12]",
        "t_run": 1_893_499_200.0,
        "t_cleanup": 1_893_499_300.0,
    }
    for n, (name, state, result, code) in enumerate(
        [
            ("lmp", "INACTIVE", "COMPLETED", 0),
            ("a-name-of-many-words-that-is-long", "INACTIVE", "FAILED", 3),
            (MARKUP, "SCHED", None, None),
            ("plot", "RUN", None, None),
        ]
    )
]
LISTED: list[dict[str, Any]] = [
    {
        "name": name,
        "namespace": "research",
        "release": name,
        "size": 4,
        "groups": {"gpu": 2, "big": 12},
        "ready": 4,
        "state": state,
        "scheduler": scheduler,
        "age": 93784,
        "next": None,
    }
    for name, state, scheduler in (
        ("demo", "Running", None),
        ("a-release-with-a-long-name", "Suspended", "Fluxion (easy, lonodex)"),
        ("c", "Failed", MARKUP),
    )
]


def drawn(text: str, columns: int, tmp_path: Path) -> Seen:
    """Show a text on a terminal."""
    (tmp_path / "text").write_text(text)
    return look(["cat", str(tmp_path / "text")], {"PATH": "/usr/bin:/bin"}, columns)


def test_jobs_fit_80_columns(tmp_path: Path) -> None:
    seen = drawn(job_table(JOBS, 1_893_499_400.0, 80), 80, tmp_path)
    assert seen.last == [
        "ID         NAME            NODES          STATUS     EXIT  START        DURATION",
        "ƒ2a9RQ8K0  lmp             demo-[0-3,5-9  COMPLETED  0     01-01 12:00  1m40s",
        "                           ],demo-gpu-[0",
        "                           -12]",
        "ƒ2a9RQ8K1  a-name-of-many  demo-[0-3,5-9  FAILED     3     01-01 12:00  1m40s",
        "           -words-that-is  ],demo-gpu-[0",
        "           -long           -12]",
        "ƒ2a9RQ8K2  [bold red]x[/]  demo-[0-3,5-9  PENDING    -     01-01 12:00  1m40s",
        r"           \x1b[31m        ],demo-gpu-[0",
        "                           -12]",
        "ƒ2a9RQ8K3  plot            demo-[0-3,5-9  RUNNING    -     01-01 12:00  1m40s",
        "                           ],demo-gpu-[0",
        "                           -12]",
    ]
    assert (seen.colours["green"], seen.colours["red"]) == ("COMPLETEDRUNNING", "FAILED")
    assert seen.colours["brown"] == "PENDING"


def test_the_list_fits_80_columns(tmp_path: Path) -> None:
    seen = drawn(list_table(LISTED, False, 80), 80, tmp_path)
    assert seen.last == [
        "NAME                        SIZE  GROUPS      READY  STATE      SCHEDULER   AGE",
        "demo                        4     gpu=2,      4      Running    Fluxion if  1d2h",
        "                                  big=12                        its view",
        "                                                                has it",
        "a-release-with-a-long-name  4     gpu=2,      4      Suspended  Fluxion     1d2h",
        "                                  big=12                        (easy,",
        "                                                                lonodex)",
        "c                           4     gpu=2,      4      Failed     [bold       1d2h",
        "                                  big=12                        red]x[/]",
        r"                                                                \x1b[31m",
    ]
    assert [seen.colours[name] for name in ("green", "brown", "red")] == ["Running", "Suspended", "Failed"]
    # in one of all namespaces, with releases of other names and without groups
    seen = drawn(list_table([{**row, "release": "r", "groups": {}} for row in LISTED], True, 80), 80, tmp_path)
    assert seen.last[0].split() == ["NAMESPACE", "NAME", "RELEASE", "SIZE", "READY", "STATE", "AGE"]


#: Rows whose ids are as long as Flux has them
LONG_IDS = [
    {**row, "id": f"f2ykHXZbHFs{number}T", "name": "relax-structure-042-of-batch"} for number, row in enumerate(JOBS)
]
HEADS = {
    80: "ID NAME NODES STATUS EXIT START DURATION",
    70: "ID NAME STATUS EXIT START DURATION",
    60: "ID NAME STATUS EXIT DURATION",
    40: "ID STATUS EXIT DURATION",
    30: "ID STATUS EXIT",
    20: "ID",
    10: "ID",
}


@pytest.mark.parametrize(("columns", "heads"), HEADS.items())
def test_a_narrow_terminal_shows_fewer_columns_and_each_id_whole(columns: int, heads: str) -> None:
    head, *lines = map(plain, job_table(LONG_IDS, 1_893_499_400.0, columns).splitlines())
    assert head.split() == heads.split()
    assert [line.split()[0] for line in lines if line[:1].strip()] == [row["id"] for row in LONG_IDS]
    assert max(map(len, lines)) <= max(columns, len(LONG_IDS[0]["id"]))


@pytest.mark.parametrize(
    ("columns", "heads"),
    {70: "NAME SIZE GROUPS READY STATE AGE", 50: "NAME SIZE READY STATE", 40: "NAME SIZE READY", 10: "NAME"}.items(),
)
def test_a_narrow_list_has_each_name_whole(columns: int, heads: str) -> None:
    head, *lines = map(plain, list_table(LISTED, False, columns).splitlines())
    assert head.split() == heads.split()
    assert [line.split()[0] for line in lines if line[:1].strip()] == [row["name"] for row in LISTED]


@pytest.mark.parametrize("columns", [10, 20, 40, 60])
def test_status_breaks_no_word(columns: int) -> None:
    found = show(*BUSY)
    assert plain(status_table(found, columns)).split() == status_table(found).split()


def plain(text: str) -> str:
    """Return a text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_status_has_colours_on_a_terminal_and_the_same_words(tmp_path: Path) -> None:
    found = show(*BUSY)
    seen = drawn(status_table(found, 100), 100, tmp_path)
    assert "\n".join(seen.last) + "\n" == status_table(found)
    assert seen.colours["green"] == "Running"
    assert "bad DIMM" in seen.colours["red"]
    assert seen.colours["brown"].startswith("3: Pending: ImagePullBackOff")


@pytest.mark.parametrize("words", [("list",), ("jobs", "mini"), ("status", "mini"), ("wait", "mini")], ids=" ".join)
def test_nothing_for_a_terminal_is_imported_for_a_pipe(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    kubectl.has(jobs=None)
    command = [sys.executable, "-X", "importtime", "-m", "minicluster", *words]
    done = subprocess.run(command, env=kubectl.environment, capture_output=True, text=True, check=False, timeout=60)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "minicluster.console.terminal" in imported
    assert {name for name in imported if name.split(".")[0] == "rich"} == set()


@pytest.mark.parametrize("words", [("list",), ("status", "mini")], ids=" ".join)
def test_json_is_the_same_on_a_terminal(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    kubectl.has(jobs=None, pods=None, job=job(end=("Complete", "x")))
    piped = kubectl.run(*words, "-o", "json")
    code = f"import sys; from minicluster.cli import run\ntry:\n    run({[*words, '-o', 'json']!r})\n"
    code += "finally:\n    assert 'rich' not in sys.modules"
    seen = look([sys.executable, "-c", code], kubectl.environment)
    assert seen.raw.decode().replace("\r\n", "\n") == piped.out


def test_status_names_the_pictures_on_a_terminal_alone(kubectl: Kubectl) -> None:
    kubectl.tool("sh", f"read -r program; echo '{json.dumps([SETTINGS, flux()])}'")
    shown = "`minicluster dashboard mini` shows it as a live page, `minicluster top mini` here"
    seen = run(kubectl, "status", "mini", columns=120)
    assert (seen.code, seen.last[-1]) == (0, f"minicluster: {shown}")
    assert "dashboard" not in kubectl.run("status", "mini").err


def test_a_long_message_breaks_between_words_and_not_in_a_command(kubectl: Kubectl) -> None:
    kubectl.has(job=job(**{"state.capacity": "1Gi"}), configmap=None)
    assert run(kubectl, "scale", "mini", "9", columns=60).last == [
        "minicluster: the size 9 is above the maxSize of mini, 8:",
        "lower it, or `minicluster replace mini --set maxSize=9`",
        "makes its Job anew with a larger one and keeps the queue",
    ]


@pytest.mark.parametrize("columns", [80, 600])
def test_create_shows_the_ends_of_a_command_of_helm_that_does_not_fit(kubectl: Kubectl, columns: int) -> None:
    kubectl.tool("helm", "exit 0")
    [line] = run(kubectl, "create", "mini", "-N", "2", "--max", "4", "--no-wait", columns=columns).last
    if columns == 80:
        assert re.fullmatch(r"helm install mini … --post-renderer minicluster", line)
    else:
        assert re.fullmatch(r"helm install mini /\S+ .*--set-json=maxSize=4.* --post-renderer minicluster", line)
