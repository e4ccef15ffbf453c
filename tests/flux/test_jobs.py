"""Jobs from a command, a list or a script: the log has exactly their output, and the lead their exit code."""

from typing import Any

import pytest
from broker_clusters import Make
from pod_jobs import UNTIL_TOLD

from tools.clients import until

QUIET = {"logging": {"quiet": True}}
#: The message of `flux run` about a job that failed
TASKS = "flux-job: task(s) exited with exit code"
TWO: dict[str, Any] = {"size": 2, **QUIET}
NASTY = [
    "a  b",
    "'",
    '"',
    "$HOME",
    "`id`",
    "$(id)",
    "\\",
    "\\n",
    "*",
    ";",
    "|",
    "&&",
    "",
    "--",
    "-n",
    "é",
    "x\ny",
    "%s",
    "#",
    "!",
]


def test_quiet_logging_prints_the_output_of_the_command_and_nothing_else(make: Make) -> None:
    cluster = make(TWO, {"command": "echo hello world"})
    assert cluster.run() == [0, 0]
    assert cluster.lead.log == "hello world\n"
    assert cluster.pods[1].log == ""


@pytest.mark.parametrize(
    ("command", "code", "log"),
    [
        ("exit 3", 3, f"{TASKS} 3\nminicluster: the job failed with exit code 3\n"),
        ("false", 1, f"{TASKS} 1\nminicluster: the job failed with exit code 1\n"),
        (
            "echo out; echo err >&2; exit 84",
            84,
            f"out\nerr\n{TASKS} 84\nminicluster: the job failed with exit code 84\n",
        ),
        (
            "nonexistent",
            127,
            "/mnt/flux/minicluster/command: line 1: nonexistent: command not found\n"
            f"{TASKS} 127\nminicluster: the job failed with exit code 127\n",
        ),
        (
            "kill -9 $$",
            1,
            "flux-job: task(s) Killed\nminicluster: the job failed with exit code 137\n"
            "minicluster: exit code 137 would mean to Kubernetes that the pod was killed: it becomes 1\n",
        ),
        (
            "exit 85",
            1,
            f"{TASKS} 85\nminicluster: the job failed with exit code 85\n"
            "minicluster: exit code 85 would mean to Kubernetes that the pod was killed: it becomes 1\n",
        ),
    ],
)
def test_a_failing_job_gives_the_lead_its_exit_code(make: Make, command: Any, code: int, log: str) -> None:
    cluster = make(TWO, {"command": command})
    assert cluster.run() == [code, 0]
    # an older Flux has this message for a task that was killed
    printed = cluster.lead.log.replace(f"{TASKS} 137", "flux-job: task(s) Killed")
    assert sorted(printed.splitlines()) == sorted(log.splitlines())
    assert cluster.pods[1].log == ""


def test_one_failing_task_of_several_fails_the_job(make: Make) -> None:
    cluster = make({**TWO, "tasks": 2}, {"command": "exit $((FLUX_TASK_RANK * 7))"})
    assert cluster.run() == [7, 0]


@pytest.mark.parametrize(
    "command",
    [
        "echo \"a  'b' $FLUX_TASK_RANK `echo x` | é\" && echo $HOME | cat",
        "echo \"a  'b' $FLUX_TASK_RANK `echo x` | é\" &&\n  echo $HOME |\n  cat\n",
    ],
)
def test_a_command_is_run_by_a_shell_as_written(make: Make, command: Any) -> None:
    cluster = make({**TWO, "tasks": 4}, {"command": command, "cores": 2})
    assert cluster.run() == [0, 0]
    lines = [f"a  'b' {rank} x | é" for rank in range(4)] + ["/tmp/home"] * 4
    assert sorted(cluster.lead.log.splitlines()) == sorted(lines)


@pytest.mark.parametrize(("tasks", "lines"), [(0, 2), (1, 1), (2, 2), (4, 4)])
def test_the_number_of_tasks_follows_the_value_tasks(make: Make, tasks: int, lines: int) -> None:
    cluster = make({**TWO, "tasks": tasks}, {"command": "echo $FLUX_JOB_SIZE", "cores": 2})
    assert cluster.run() == [0, 0]
    assert cluster.lead.log == f"{lines}\n" * lines


def test_a_command_that_is_a_list_is_run_as_an_exact_argv(make: Make) -> None:
    cluster = make(QUIET, {"command": ["printf", "<%s>\n", *NASTY]})
    assert cluster.run() == [0]
    assert cluster.lead.log == "".join(f"<{word}>\n" for word in NASTY)


@pytest.mark.parametrize(
    "command",
    [["printf", "%s,", "{{id}}", "{cc}", "{}", "{{x"], "printf '%s,' {{id}} {cc} {} {{x"],
    ids=["list", "text"],
)
def test_braces_in_a_command_are_not_expanded(make: Make, command: Any) -> None:
    cluster = make(QUIET, {"command": command})
    assert cluster.run() == [0]
    assert cluster.lead.log == "{{id}},{cc},{},{{x,"


def test_the_shell_of_a_command_does_not_read_bashrc(make: Make) -> None:
    init = "echo 'echo bashrc' >$HOME/.bashrc"
    cluster = make(QUIET, {"command": "echo hello", "commands": {"init": init}})
    assert cluster.run() == [0]
    assert cluster.lead.log == "hello\n"


@pytest.mark.parametrize(
    ("script", "log"),
    [
        ('echo "$0" "$HOME" \'$HOME\'\nfalse\necho é', "/mnt/flux/minicluster/script /tmp/home $HOME\né\n"),
        ('#!/bin/sh\necho "$0"\n[ -z "${BASH_VERSION:-}" ] && echo sh', "/mnt/flux/minicluster/script\nsh\n"),
        ("#!/usr/bin/env -S sed -n 1p\nrest", "#!/usr/bin/env -S sed -n 1p\n"),
    ],
)
def test_a_script_is_run_by_its_interpreter_as_written(make: Make, script: str, log: str) -> None:
    cluster = make(QUIET, {"commands": {"script": script}})
    assert cluster.run() == [0]
    assert cluster.lead.log == log


def test_a_script_gives_the_lead_its_exit_code(make: Make) -> None:
    cluster = make(QUIET, {"commands": {"script": "#!/bin/sh\nexit 4\n"}})
    assert cluster.run() == [4]


def test_jobs_have_the_environment_of_the_values(make: Make) -> None:
    flux = {"environment": {"GREETING": 'it\'s "$HOME" `id` é', "EMPTY": ""}}
    command = 'echo "$GREETING/${EMPTY-unset}/${PYTHONPATH-unset}"; flux getattr size'
    cluster = make({**QUIET, "flux": flux}, {"command": command})
    assert cluster.run() == [0]
    assert cluster.lead.log == 'it\'s "$HOME" `id` é//unset\n1\n'


def test_the_pythonpath_of_the_image_is_kept_in_jobs(make: Make) -> None:
    cluster = make(
        QUIET,
        {"command": "echo $PYTHONPATH; flux resource list -n -o {nnodes} -s up"},
        environment={"PYTHONPATH": "/a"},
    )
    assert cluster.run() == [0]
    assert cluster.lead.log == "/a\n1\n"


def test_prefix_submit_command_and_option_flags_are_used(make: Make) -> None:
    flux = {"submitCommand": "flux submit --env=C=c", "optionFlags": "--env=A='b c' -c1"}
    cluster = make({**QUIET, "flux": flux}, {"command": 'echo "$A $B $C"', "commands": {"prefix": "env B='d  e'"}})
    assert cluster.run() == [0]
    assert cluster.lead.log == "b c d  e c\n"


def test_flux_sees_the_cores_and_gpus_of_the_values(make: Make) -> None:
    runner = {"command": "flux resource list -n -s up -o '{nnodes} {ncores} {ngpus}'", "cores": 3}
    cluster = make(TWO, {**runner, "resources": {"limits": {"nvidia.com/gpu": 2}}})
    assert cluster.run() == [0, 0]
    assert cluster.lead.log == "2 6 4\n"


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("verb", ["flux run", "flux submit"])
def test_the_log_has_the_output_of_all_tasks_and_the_exit_code(make: Make, code: int, verb: str) -> None:
    values = {"size": 2, "tasks": 2, "flux": {"submitCommand": verb}, "logging": {"quiet": True}}
    cluster = make(values, {"command": f"echo hello; exit {code}"})
    assert cluster.run() == [code, 0]
    own = f"{TASKS} {code}\n" if verb == "flux run" else ""
    said = f"{own}minicluster: the job failed with exit code {code}\n" if code else ""
    assert cluster.lead.log == f"hello\nhello\n{said}"


def test_the_log_has_the_output_while_the_command_runs(make: Make) -> None:
    cluster = make(QUIET, {"command": f"echo first; {UNTIL_TOLD}"}).start()
    until(lambda: cluster.lead.log == "first\n", seconds=30)
    cluster.lead.run("touch", "/tmp/end")
    assert cluster.wait() == [0]
    assert cluster.lead.log == "first\ndone\n"


def test_a_time_limit_of_flux_ends_the_work_and_keeps_its_log(make: Make) -> None:
    """With deadlineSeconds, Kubernetes would remove the pods with their logs."""
    cluster = make({"flux": {"optionFlags": "-t 1s"}, **QUIET}, {"command": "echo begun; sleep 600"})
    assert cluster.run() == [142]
    lines = cluster.lead.log.splitlines()
    assert lines[0] == "begun"
    assert any("type=timeout severity=0 resource allocation expired" in line for line in lines)
    assert lines[-1] == "minicluster: the job failed with exit code 142"
