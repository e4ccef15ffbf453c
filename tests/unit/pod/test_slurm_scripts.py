"""Heads of scripts, of the kinds that people publish: each is taken, with all that it asks for, or refused by name.

`slurm_heads.txt` has the lines, with | between them, and below what becomes of them (slurm_short.py).
"""

import os
from pathlib import Path

import pytest
from slurm_jobspec import jobspec_of
from slurm_layout import Layout, layout_of, of_instance, of_tasks
from slurm_parse import SlurmError
from slurm_short import ENVIRONMENT, FACTS, becomes
from slurm_wanted import Request, shape_of

LINES = (Path(__file__).parent / "slurm_heads.txt").read_text().splitlines()
HEADS = list(zip(LINES[::2], (line.strip() for line in LINES[1::2]), strict=True))
#: What a script is started by
WRITER = ["/bin/sh", "/mnt/flux/minicluster/slurm_output.sh", "truncate", "slurm-{{id.dec}}.out", ""]


def test_there_are_heads_of_all_kinds() -> None:
    assert len(dict(HEADS)) == len(HEADS) > 80
    assert 20 < sum(text.startswith("refused: ") for _, text in HEADS) < 40


@pytest.mark.parametrize(("head", "text"), HEADS, ids=[head for head, _ in HEADS])
def test_a_head_becomes_a_job_or_is_refused_by_name(head: str, text: str) -> None:
    assert becomes(head) == text


def jobspec(command: str, words: list[str], **given: str) -> dict[str, object]:
    """Return the jobspec of a command with options, whose names have _ for -."""
    options = {name.replace("_", "-"): text for name, text in given.items()}
    script = "#!/bin/sh\n" if command == "sbatch" else ""
    return jobspec_of(Request(command, options, words, script, shape_of(options, FACTS, 0), [], FACTS), ENVIRONMENT, {})


def test_a_script_becomes_the_whole_jobspec() -> None:
    assert jobspec("sbatch", ["a b"], job_name="x", time="1", comment="c") == {
        "version": 1,
        "resources": [{"type": "slot", "count": 1, "label": "task", "with": [{"type": "core", "count": 1}]}],
        "tasks": [{"command": [*WRITER, "{{tmpdir}}/slurm_script", "a b"], "slot": "task", "count": {"per_slot": 1}}],
        "attributes": {
            "system": {
                "duration": 60.0,
                "cwd": "/home/me",
                "environment": {
                    **ENVIRONMENT,
                    "ENVIRONMENT": "BATCH",
                    "MINICLUSTER_SLURM_STEP": "here",
                    "SLURM_CLUSTER_NAME": "mc",
                    "SLURM_EXPORT_ENV": "ALL",
                    "SLURM_JOB_GID": str(os.getgid()),
                    "SLURM_JOB_NAME": "x",
                    "SLURM_JOB_PARTITION": "mc",
                    "SLURM_JOB_UID": str(os.getuid()),
                    "SLURM_JOB_USER": "me",
                    "SLURM_SUBMIT_DIR": "/home/me",
                    "SLURM_SUBMIT_HOST": "host",
                },
                "job": {"name": "x"},
                "shell": {
                    "options": {
                        "input": {"stdin": {"type": "file", "path": "/dev/null"}},
                        "output": {"stdout": {"type": "file", "path": "slurm-{{id.dec}}.out"}, "mode": "append"},
                    }
                },
                "files": {"slurm_script": {"mode": 0o100700, "data": "#!/bin/sh\n", "encoding": "utf-8"}},
            },
            "user": {"slurm": {"command": "sbatch", "tasks": 1, "cpus": 1, "comment": "c"}},
        },
    }


def test_options_of_srun_become_those_of_fluxs_shell() -> None:
    spec = jobspec(
        "srun", ["a"], label="", unbuffered="", mpi="pmix_v4", pty="", cpu_bind="none", kill_on_bad_exit="", wait="5"
    )
    expected = {
        "output": {name: {"label": True, "buffer": {"type": "none"}} for name in ("stdout", "stderr")},
        "pty": {"interactive": 1},
        "cpu-affinity": "off",
        "pmi": "pmix",
        "exit-on-error": 1,
        "exit-timeout": "5s",
    }
    assert spec["attributes"]["system"]["shell"]["options"] == expected  # type: ignore[index]


TWO_PER_NODE = {"per-resource": {"type": "node", "count": 2}}


@pytest.mark.parametrize(
    ("layout", "resources", "count", "options"),
    [
        (Layout(0, 3, 2, 0, 1, False, True), "slot 3: core 2, gpu 1", {"per_slot": 1}, {}),
        (Layout(2, 4, 2, 0, 0, True, True), "node 2 alone: slot 2: core 2", {"per_slot": 1}, {}),
        (Layout(2, 3, 1, 0, 0, False, True), "node 2: slot 2: core 1", {"total": 3}, {}),
        (Layout(2, 4, 3, 2, 0, False, True), "node 2: slot 1: core 6, gpu 2", {"per_slot": 1}, TWO_PER_NODE),
        (Layout(1, 1, 3, 2, 0, False, True), "node 1: slot 1: core 3, gpu 2", {"per_slot": 1}, {}),
    ],
)  # fmt: skip
def test_tasks_have_their_resources(layout: Layout, resources: str, count: object, options: object) -> None:
    found = of_tasks(layout)
    assert (shown(found[0][0]), *found[1:]) == (resources, count, options)


def shown(part: dict[str, object]) -> str:
    """Return a resource with its parts in short."""
    inner = ", ".join(map(shown, part.get("with", [])))  # type: ignore[call-overload]
    return f"{part['type']} {part['count']}{' alone' if part.get('exclusive') else ''}{': ' if inner else ''}{inner}"


def test_an_instance_has_a_broker_on_each_node() -> None:
    found = of_instance(Layout(0, 3, 2, 0, 1, False, True))
    assert (shown(found[0][0]), *found[1:]) == (
        "slot 3: core 2, gpu 1",
        {"per_slot": 1},
        {"per-resource": {"type": "node"}},
    )
    found = of_instance(Layout(2, 4, 2, 0, 1, False, True))
    assert (shown(found[0][0]), *found[1:]) == ("node 2: slot 1: core 4, gpu 2", {"per_slot": 1}, {})


def test_whole_nodes_are_enough_for_the_tasks() -> None:
    assert layout_of({"ntasks": "20", "cpus-per-task": "2", "exclusive": ""}, 0, 8).nodes == 5
    with pytest.raises(SlurmError, match=r"^--ntasks=9: --nodes=2 with --ntasks-per-node=4 has room for 8$"):
        layout_of({"ntasks": "9", "nodes": "2", "ntasks-per-node": "4"}, 0, 8)
