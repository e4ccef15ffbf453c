"""Slurm's commands on real brokers: jobs, arrays and steps run, are shown and end as Slurm's users know it."""

import json
import re
import shlex
import socket
from collections.abc import Callable
from datetime import datetime

import pytest
from broker_clusters import Cluster, Make
from broker_pods import NAME, Flux

from tools.clients import until
from tools.releases import MOUNT

Sh = Callable[..., str]
HEAD = "#!/bin/sh\n"
MEMORY = "Memory specification can not be satisfied"


@pytest.fixture
def cluster(make: Make) -> Cluster:
    return make({"size": 2, "interactive": True}, {"cores": 4, "gpus": 2}).start().wait_for_ready()


@pytest.fixture
def sh(cluster: Cluster) -> Sh:
    """Run a line in a shell of the lead, and return what it prints; the exit code is the last line where asked for."""

    def run(line: str, *, code: int = 0, stderr: bool = False) -> str:
        text = f". {MOUNT}/flux-view.sh; cd /tmp/home; {line}"
        done = cluster.lead.run("bash", "-c", text)
        assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}{cluster.lead.log}"
        return done.stderr if stderr else done.stdout

    return run


def write(sh: Sh, name: str, script: str) -> None:
    sh(f"printf %s {shlex.quote(HEAD + script)} >{name}")


def test_a_script_runs_with_its_options_variables_and_steps(sh: Sh) -> None:
    write(
        sh,
        "one.sh",
        "#SBATCH -J one -o %x-%j.txt -t 5 --mem=10M\n"
        'echo "$SLURM_JOB_NAME $SLURM_NTASKS $SLURM_MEM_PER_NODE $SLURM_JOB_NUM_NODES $SLURM_TASKS_PER_NODE $* $PWD"\n'
        "srun printenv SLURM_STEP_ID SLURM_PROCID\nsrun sh -c 'exit 3'\necho $?\n"
        "srun -o step.txt printenv SLURM_STEP_ID\nsrun -n2 true\nexit 7\n",
    )
    job = sh("sbatch -W --parsable -J two one.sh a 'b c'", code=7).strip()
    assert job.isdecimal()
    text = sh(f"cat two-{job}.txt step.txt")
    refused = f"srun: error: Unable to create step for job {job}: More processors requested than permitted\n"
    assert text == f"two  10 1 1 a b c /tmp/home\n0\n0\n3\n{refused}2\n"
    assert sh(f"sacct -n -X -P -j {job} -o jobid,jobname,state,exitcode,ncpus") == f"{job}|two|FAILED|7:0|1\n"


def test_a_script_writes_to_its_files_itself_and_its_steps_need_no_variables(sh: Sh) -> None:
    taken = "unset $(env | sed -n 's/^\\(SLURM_[A-Z_]*\\)=.*/\\1/p')"
    step = "srun -n1 -c2 printenv SLURM_CPUS_PER_TASK SLURM_JOB_NUM_NODES SLURM_JOB_NODELIST"
    write(sh, "own.sh", f"#SBATCH -c2 -o own.txt\necho one\necho two | tee -a /dev/stderr\n{taken}\n{step}\n")
    job = sh("echo before >own.txt; sbatch -W --parsable own.sh").strip()
    *lines, host = sh("cat own.txt").splitlines()
    assert lines == ["one", "two", "two", "2", "1"]
    # an older instance asks the kernel for its name, which is one for all pods here
    assert host in (f"{NAME}-0", socket.gethostname())
    assert sh(f"sacct -n -P -j {job}.0; sacct -n -P -j {job}.0,{job}.batch -o jobid") == f"{job}\n"


def test_the_names_of_a_jobs_nodes_lead_to_them(sh: Sh) -> None:
    # files as the kubelet makes them
    sh(f"echo 10.0.0.1 {NAME}-0.mini.ns.svc.example {NAME}-0 >/tmp/hosts; mount --bind /tmp/hosts /etc/hosts")
    sh("echo search ns.svc.example example >/tmp/resolver; mount --bind /tmp/resolver /etc/resolv.conf")
    # an older shell asks the kernel for its node's name
    sh(f"echo {NAME}-0 >/tmp/hostname; mount --bind /tmp/hostname /proc/sys/kernel/hostname")
    line = f"srun -w {NAME}-0 printenv LOCALDOMAIN"
    assert sh(f"{line}; LOCALDOMAIN=mine {line}") == "mini.ns.svc.example ns.svc.example example\nmine\n"


def test_a_script_of_several_nodes_has_an_instance_whose_jobs_are_its_steps(sh: Sh) -> None:
    names = (
        "SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_NTASKS SLURM_TASKS_PER_NODE SLURM_JOB_CPUS_PER_NODE SLURM_CPUS_PER_TASK"
    )
    script = (
        f"#SBATCH -N2 --ntasks-per-node=2 -c2 -o many.txt\nprintenv {names}\n"
        "srun sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_STEP_ID $SLURM_NTASKS' | sort\n"
        "srun -n1 sh -c 'echo $SLURM_NTASKS $SLURM_STEP_ID; exit 4'; echo $?\nsqueue -h -o '%i %D'\n"
    )
    write(sh, "many.sh", script)
    job = sh("sbatch -W --parsable many.sh").strip()
    steps = ["0 0 0 0 4", "1 1 0 0 4", "2 0 1 0 4", "3 1 1 0 4", "1 1"]
    values = [job, f"{NAME}-[0-1]", "4", "2(x2)", "4(x2)", "2"]
    lines = sh("cat many.txt").splitlines()
    assert [line for line in lines if "flux-job" not in line] == [*values, *steps, "4", f"{job} 2"]


def test_each_node_of_a_job_knows_the_cores_of_all(sh: Sh) -> None:
    show = "echo $SLURM_NODEID $SLURM_CPUS_ON_NODE $SLURM_JOB_CPUS_PER_NODE"
    # the number of tasks, with a core each, before what each of them says
    said = sh(f"srun -n7 sh -c '{show}' | sort | uniq -c").split()
    assert said in (["4", "0", "4", "4,3", "3", "1", "3", "4,3"], ["3", "0", "3", "3,4", "4", "1", "4", "3,4"])


def test_several_tasks_of_one_script_with_several_cores_run_at_once(sh: Sh) -> None:
    write(sh, "cores.sh", "#SBATCH -c3 -o cores.txt\nsrun -n3 -c1 -l printenv SLURM_PROCID SLURM_JOB_NAME | sort\n")
    sh("sbatch -W cores.sh")
    assert sh("cat cores.txt") == "0: 0\n0: cores.sh\n1: 1\n1: cores.sh\n2: 2\n2: cores.sh\n"


def test_the_tasks_of_an_array_have_its_id_and_run_at_most_so_many(sh: Sh) -> None:
    script = f"#SBATCH -a 0-6:2%2 -w {NAME}-0\n"
    script += "echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT\n"
    script += "until [ -e shown ]; do sleep 0.1; done\n"
    write(sh, "array.sh", script)
    array, *_, last = sh("sbatch --parsable array.sh; squeue -h -t pd -S i -o '%i %F %K %r'").splitlines()
    assert last == f"{array}_6 {array} 6 Dependency"
    most = until(lambda: sh("squeue -h -t R -o %t").split().count("R"))
    sh("touch shown")

    def has_ended() -> bool:
        nonlocal most
        states = sh("squeue -h -t R,PD -o %t").split()
        most = max(most, states.count("R"))
        return not states

    until(has_ended)
    assert most <= 2
    assert sh(f"cat slurm-{array}_*.out") == "".join(f"{array} {index} 4\n" for index in (0, 2, 4, 6))
    assert sh(f"sacct -n -X -P -j {array}_[2-4] -o jobid,state") == f"{array}_2|COMPLETED\n{array}_4|COMPLETED\n"


def test_jobs_are_held_released_depended_on_and_cancelled(sh: Sh) -> None:
    first = sh("sbatch -H --parsable -J first --wrap true").strip()
    second = sh(f"sbatch --parsable -d afterok:{first} --wrap 'sleep inf'").strip()
    third = sh("sbatch --parsable -b now+1hour -J third --wrap true").strip()
    shown = f"{first} PD JobHeldUser\n{second} PD Dependency\n{third} PD BeginTime\n"
    assert sh("squeue -h -S i -o '%i %t %r'") == shown
    sh(f"scontrol release {first}")
    until(lambda: sh("squeue -h -t R -o %i") == f"{second}\n")
    assert sh(f"sbatch -W -d after:{second} --wrap true 2>&1 >/dev/null") == ""
    sh(f"scancel -n third; scancel {second}.batch")
    until(lambda: sh("squeue -h") == "")
    assert sh(f"sacct -n -P -o jobid,state,exitcode -j {second},{third}") == (
        f"{second}|CANCELLED by 0|0:15\n{third}|CANCELLED by 0|0:15\n"
    )


def test_a_job_that_requeues_itself_keeps_its_id_and_its_files(sh: Sh, flux: Flux) -> None:
    script = "#SBATCH -o made/%j/%x.txt --open-mode=append\ntrap : TERM\n"
    script += "echo $SLURM_JOB_ID $SLURM_RESTART_COUNT\n"
    script += '[ "$SLURM_RESTART_COUNT" ] && srun -o again/%j/%s echo step && exit\n'
    write(sh, "again.sh", f"{script}scontrol requeue $SLURM_JOB_ID && echo requeued\n")
    job = sh("sbatch --parsable again.sh").strip()
    until(lambda: sh(f"sacct -n -P -j {job} -o jobid,state") == f"{job}|COMPLETED\n")
    # an older shell begins each file anew
    before = f"{job}\nrequeued\n" if flux.minor >= 60 else ""
    assert sh(f"cat made/{job}/again.sh.txt again/{job}/0") == f"{before}{job} 1\nstep\n"
    assert sh(f"scontrol requeue {job}; sacct -n -P -D -j 1 -j {job} -o jobid").split() == [job] * 3


def test_the_start_of_a_job_that_waits_is_the_schedulers_estimate(sh: Sh, flux: Flux) -> None:
    if flux.scheduler == "sched-simple":
        flux.since(84, "sched-simple does not say when a job starts")
    first = sh("sbatch --parsable -N2 --exclusive -t 10 --wrap 'sleep inf'").strip()
    until(lambda: sh("squeue -h -t R -o %i") == f"{first}\n")
    second = sh("sbatch --parsable -N2 -t 5 --wrap true").strip()
    until(lambda: "t_estimate" in sh(f"flux jobs -no '{{annotations}}' {second}"))

    def seconds(line: str) -> list[float]:
        return [datetime.fromisoformat(text).timestamp() for text in sh(line).split()]

    (end,) = seconds(f"squeue -h -j {first} -o %e")
    start, over = seconds(f"squeue --start -h -j {second} -o '%S %e'")
    assert (abs(start - end) < 3, over - start) == (True, 300)
    test = "sbatch --test-only -t 5 --wrap true"
    told = re.fullmatch(r"sbatch: Job 0 to start at (\S+) using (.*)\n", sh(f"{test} -N2 2>&1"))
    assert told and told[2] == f"2 processors in partition {NAME}"
    # beside the second one
    assert abs(datetime.fromisoformat(told[1]).timestamp() - start) < 5
    assert sh("squeue -h -S i -o %i").split() == [first, second]
    said = sh(f"{test} -N3 2>&1", code=1)
    # the scheduler's words come first
    assert said.startswith("sbatch: error: allocation failure: ")
    assert said.endswith(": it asks for 3 nodes of 1 core, and all nodes have room for 2\n")


def test_a_script_that_would_get_a_signal_ends_when_it_is_done(sh: Sh) -> None:
    line = "sbatch --quiet -W -t 5 --signal=USR2@90 -o done.txt --wrap 'echo done'"
    assert sh(f"timeout 30 {line} && cat done.txt") == "done\n"


def test_jobs_end_at_their_limit_after_a_signal(sh: Sh) -> None:
    for options, work, told in (
        ("--signal=B:USR1@3", "trap 'echo told' USR1; while :; do sleep 0.1; done", "told"),
        ("--signal=USR1@3", "srun sh -c 'trap \"echo step\" USR1; while :; do sleep 0.1; done'", "step"),
        ("--signal=USR1@3 -n2", "srun -n1 sh -c 'trap \"echo job\" USR1; while :; do sleep 0.1; done'", "job"),
    ):
        write(sh, "limit.sh", f"#SBATCH -t 0:08 {options} -o limit.txt\n{work}\n")
        job = sh("sbatch --parsable limit.sh").strip()
        until(lambda job=job: sh(f"sacct -X -n -P -j {job} -o state,exitcode") == "TIMEOUT|0:0\n")  # type: ignore[misc]
        lines = sh("cat limit.txt").splitlines()
        assert told in lines
        # not to the processes that the script has started
        assert told != "told" or not [line for line in lines if "User defined" in line]


def test_srun_and_salloc_give_the_highest_exit_code_of_their_tasks(sh: Sh) -> None:
    assert sh("srun -n4 -l sh -c 'echo $SLURM_NTASKS; exit $SLURM_PROCID'; echo $?").splitlines()[-1] == "3"
    assert sh("srun sh -c 'kill -9 $$'; echo $?") == "137\n"
    assert sh("echo text | srun -N2 cat; srun --export=NONE,A=1 /usr/bin/printenv A HOME").endswith("1\n/tmp/home\n")
    assert sh("salloc -N2 sh -c 'srun -l printenv SLURM_NODEID; exit 5' | sort; echo ${PIPESTATUS[0]}") == (
        "0: 0\n1: 1\n5\n"
    )


def test_nodes_and_jobs_are_shown_as_slurm_shows_them(sh: Sh) -> None:
    job = sh("sbatch --parsable -N1 --exclusive -J name --comment='a b' --wrap 'sleep inf'").strip()
    until(lambda: sh("squeue -h -t R -o %i"))
    assert sh("sinfo") == (
        "PARTITION    AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        f"{NAME}*    up   infinite      1  alloc {NAME}-0\n{NAME}*    up   infinite      1   idle {NAME}-1\n"
    )
    assert sh("sinfo -h -o '%P %D %C %G'; sinfo -aho %A/%D/%C") == f"{NAME}* 2 4/4/0/8 gpu:2\n1/1/2/4/4/0/8\n"
    assert sh("sinfo -ahNO nodehost:14,gres:6,gresused:6,statelong").splitlines()[1:] == [
        f"{NAME}-1 gpu:2 gpu:0 idle                "
    ]
    found = json.loads(sh("squeue --json"))["jobs"]
    assert [(one["job_id"], one["name"], one["job_state"], one["comment"]) for one in found] == [
        (int(job), "name", ["RUNNING"], "a b")
    ]
    shown = sh("squeue").splitlines()
    assert shown[0] == "               JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
    assert re.fullmatch(rf" *{job} flux-samp     name     root  R +0:\d\d      1 {NAME}-0", shown[1])
    assert f"JobId={job} JobName=name UserId=root" in sh(f"scontrol -o show job {job}")
    sh(f"scontrol update nodename={NAME}-1 state=drain reason=why; scontrol update job={job} timelimit=+1", code=1)
    assert sh("sinfo -h -t drain -o '%N %E'") == f"{NAME}-1 why\n"
    sh(f"scontrol update nodename={NAME}-1 state=resume")
    assert sh("scontrol show hostnames 'a[1-2],b'") == "a1\na2\nb\n"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("sbatch none.sh", "Unable to open file none.sh: No such file or directory, looked for in /tmp/home"),
        ("sbatch -p none --wrap true", f"invalid partition specified: none: there is {NAME}"),
        ("sbatch -C a --wrap true", "--constraint=a: Invalid feature specification: nodes have no property"),
        ("sbatch --mem=9T --wrap true", f"{MEMORY}: {9 << 20} MiB on a node that has N MiB"),
        ("sbatch -d afterok:5 --wrap true", "Invalid job id specified"),
        ("squeue -j 5", "Invalid job id specified"),
        ("scancel 5", "Kill job error on job id 5: Invalid job id specified"),
        ("scancel", "No job identification provided"),
        ("sinfo -t odd", 'Bad state string: "odd": there is idle, allocated, mixed, drained, draining, down'),
        ("sacct -o odd", "--format: Invalid field requested: odd"),
        ("srun", "fatal: No command given to execute."),
        ("scontrol update job=5 x=1", "Invalid job id specified"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_in_one_line(sh: Sh, line: str, problem: str) -> None:
    found = re.sub(r"has \d+ MiB", "has N MiB", sh(line, code=1, stderr=True))
    said_by = "slurm_load_jobs" if line == "squeue -j 5" else f"{line.split(maxsplit=1)[0]}:"
    assert found == f"{said_by} error: {problem}\n"
    assert sh("squeue -h -t all") == ""
