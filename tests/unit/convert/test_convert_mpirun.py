"""The launcher of an MPIJob: what mpirun's words become, which are dropped, and which are refused."""

import re
from typing import Any

import pytest
from minicluster.convert.mpijob import run_time
from mpi_jobs import BY_FLAGS, BY_RUN, RUNS_ONCE, converted, job, refused, shell

FOUR = {"resources": {"limits": {"cpu": 4}}}


def work(words: Any, **more: Any) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return what a launcher's words add to the values, and the warnings and notes of it."""
    values, warnings, notes = converted(job(words, **more))
    runner = values["containers"][0]
    known = {key: runner[key] for key in ("command", "launcher", "cores", "environment", "workingDir") if key in runner}
    known |= {key: values[key] for key in ("tasks", "flux") if key in values}
    # -o mpi=, which each has, is in other tests
    if "flux" in known:
        known["flux"] = _without_option(known["flux"])
    if "launcher" in known:
        known["command"] = [word.replace(" -o mpi=openmpi", "") for word in known["command"]]
    known = {key: value for key, value in known.items() if value != {}}
    return known, [text for text in warnings if text not in (BY_FLAGS, BY_RUN, RUNS_ONCE)], notes


def _without_option(flux: dict[str, str]) -> dict[str, str]:
    flags = re.sub(r" ?-o mpi=(openmpi|mpich|intel)$", "", flux["optionFlags"])
    return {key: value for key, value in (flux | {"optionFlags": flags}).items() if value}


LONE: dict[str, tuple[str, dict[str, Any]]] = {
    "no number": ("mpirun pi", {"tasks": 4}),
    "a path": ("/opt/mpi/bin/mpiexec -n 4 pi -n 5", {"tasks": 4, "command": ["pi", "-n", "5"]}),
    "tasks of a node": ("mpirun -N 1 pi", {"tasks": 2, "flux": {"optionFlags": "-c2"}, "cores": 2}),
    "one a node": ("mpirun -pernode pi", {"tasks": 2, "flux": {"optionFlags": "-c2"}, "cores": 2}),
    "by node": ("mpirun -np 4 --map-by node pi", {"tasks": 4, "flux": {"optionFlags": "--taskmap=cyclic"}}),
    "ppr": ("mpirun -np 4 --map-by ppr:2:node pi", {"tasks": 4}),
    "cores of a task": ("mpirun -np 2 --map-by slot:PE=2 pi", {"tasks": 2, "flux": {"optionFlags": "-c2"}}),
    "unbound": ("mpirun -np 4 --bind-to none pi", {"tasks": 4, "flux": {"affinity": "off"}}),
    "variables": ("mpirun -np 4 -x A=1 -x B pi", {"tasks": 4, "environment": {"A": "1"}}),
    "parameters": ("mpirun -np 4 --mca btl ^openib pi", {"tasks": 4, "environment": {"OMPI_MCA_btl": "^openib"}}),
    "a folder": ("mpirun -np 4 --wdir /data pi", {"tasks": 4, "workingDir": "/data"}),
    "labels": ("mpirun -np 4 --tag-output pi", {"tasks": 4, "flux": {"optionFlags": "--label-io"}}),
    "a limit of time": ("mpirun -np 4 --timeout 60 pi", {"tasks": 4, "flux": {"optionFlags": "--time-limit=60s"}}),
    "more than slots": ("mpirun -np 6 --oversubscribe pi", {"tasks": 6, "cores": 3}),
}


@pytest.mark.parametrize(("line", "expected"), LONE.values(), ids=LONE)
def test_a_lone_mpirun_becomes_the_command_and_its_tasks(line: str, expected: dict[str, Any]) -> None:
    for words in (line.split(), shell(line), shell(f"exec {line}  # a comment")):
        known, _, _ = work(words, slotsPerWorker=2, worker={"resources": {"limits": {"cpu": 2}}})
        assert known == {"command": ["pi"]} | {key: value for key, value in expected.items() if key != "cores"} | (
            {"cores": expected["cores"]} if expected.get("cores", 0) > 2 else {}
        )


HYDRA: dict[str, tuple[str, dict[str, Any]]] = {
    "tasks of a node": ("mpirun -ppn 2 pi", {"tasks": 4}),
    "the operator's hosts": ("mpiexec.hydra -n 4 -f /etc/mpi/hostfile pi", {"tasks": 4}),
    "variables": ("mpirun -n 4 -genv A 1 -env B 2 -genvall pi", {"tasks": 4, "environment": {"A": "1", "B": "2"}}),
    "unbound": ("mpirun -n 4 -bind-to none pi", {"tasks": 4, "flux": {"affinity": "off"}}),
    "round robin": ("mpirun -n 4 -rr pi", {"tasks": 4, "flux": {"optionFlags": "--taskmap=cyclic"}}),
    "labels": ("mpirun -n 4 -l pi", {"tasks": 4, "flux": {"optionFlags": "--label-io"}}),
    "more than slots": ("mpirun -n 6 pi", {"tasks": 6, "cores": 3}),
}


@pytest.mark.parametrize(("line", "expected"), HYDRA.values(), ids=HYDRA)
@pytest.mark.parametrize("mpi", ["MPICH", "Intel"])
def test_mpirun_of_mpich_and_intel_mpi_has_words_of_its_own(line: str, expected: dict[str, Any], mpi: str) -> None:
    known, _, _ = work(line.split(), slotsPerWorker=2, mpiImplementation=mpi)
    assert known == {"command": ["pi"], "cores": 2} | expected


def test_what_is_dropped_is_noted_with_its_reason() -> None:
    words = "mpirun --allow-run-as-root -np 2 --bind-to core -map-by slot -mca plm_rsh_args -p2222 -x PATH -q pi"
    _, warnings, notes = work(words.split())
    assert warnings == []
    assert notes == [
        "mpirun: --allow-run-as-root is dropped: Flux runs as any user",
        "mpirun: --bind-to core is dropped: Flux binds tasks if their pod has CPUs of its own (flux.affinity)",
        "mpirun: -map-by slot is dropped: Flux places the tasks",
        "mpirun: -mca plm_rsh_args -p2222 is dropped: it is for mpirun's own network, Flux starts the tasks",
        "mpirun: -q is dropped: it is about mpirun's own output",
        "mpirun: PATH need not be exported: tasks have the variables of their image and their pod",
    ]


WARNED: dict[str, tuple[dict[str, Any], str]] = {
    "mpirun -np 2 pi": (
        {"slotsPerWorker": 2},
        "mpirun starts 2 tasks evenly over 2 nodes here: it filled the first workers",
    ),
    "mpirun --prefix /opt/mpi pi": (
        {},
        "mpirun --prefix /opt/mpi is dropped: set LD_LIBRARY_PATH if the program does not find its MPI",
    ),
    "mpirun --oversubscribe -np 4 pi": ({}, "mpirun has more tasks than slots: a node has 2 cores for Flux"),
    "mpirun -np 4 pi": (
        {"slotsPerWorker": 2, "worker": {"resources": {"limits": {"nvidia.com/gpu": 3}}}},
        "mpirun gives each task all 3 GPUs of its node: they can't be shared out evenly",
    ),
}


@pytest.mark.parametrize(("line", "case"), WARNED.items(), ids=WARNED)
def test_what_runs_otherwise_is_a_warning(line: str, case: tuple[dict[str, Any], str]) -> None:
    more, warning = case
    assert work(line.split(), **more)[1] == [warning]


@pytest.mark.parametrize(
    ("line", "gpus", "flags"),
    [("mpirun pi", 4, "-c2 -g2"), ("mpirun -N 1 pi", 4, "-c4 -g4"), ("mpirun pi", 3, "-c2 -ogpu-affinity=off")],
)
def test_tasks_share_the_cpus_and_the_gpus_of_their_node(line: str, gpus: int, flags: str) -> None:
    known, _, _ = work(
        line.split(), slotsPerWorker=2, worker={"resources": {"limits": {"cpu": 4, "nvidia.com/gpu": gpus}}}
    )
    assert known["flux"] == {"optionFlags": flags}


SCRIPTS = {
    "cd /data && mpirun -np 2 ./pi > out": "cd /data && flux run -N2 -n2 ./pi > out",
    "set -e\nmpirun -np 2 \\\n  -x A=$A -x 'B=b c' \\\n  ./pi -n 1\necho done\n": (
        "set -e\nflux run -N2 -n2 --env=A=$A --env=B='b c' ./pi -n 1\necho done\n"
    ),
    "mpirun -np $NP --mca btl ^tcp ./pi": "flux run -n $NP --env=OMPI_MCA_btl=^tcp ./pi",
    "mpirun -np $NP --map-by node ./pi": "flux run -N2 -n $NP --taskmap=cyclic ./pi",
    "mpirun -N $PPN ./pi": "flux run -N2 --tasks-per-node=$PPN ./pi",
    'timeout 60 mpirun -np 2 --bind-to none "$HOME/pi"': 'timeout 60 flux run -N2 -n2 -ocpu-affinity=off "$HOME/pi"',
    "for n in 1 2; do A=1 mpirun -np $n ./pi; done # mpirun -np 3": (
        "for n in 1 2; do A=1 flux run -n $n ./pi; done # mpirun -np 3"
    ),
    "echo no ssh here; mpirun --hostfile /etc/mpi/hostfile -np 2 pi # /etc/mpi/hostfile": (
        "echo no ssh here; flux run -N2 -n2 pi # /etc/mpi/hostfile"
    ),
    "echo before mpirun; mpirun -np 1 a; mpirun -np 2 --wdir $W b": (
        "echo before mpirun; flux run -n1 a; flux run -N2 -n2 --cwd=$W b"
    ),
}


@pytest.mark.parametrize(("text", "expected"), SCRIPTS.items(), ids=range(len(SCRIPTS)))
def test_each_mpirun_of_a_shell_text_becomes_flux_run(text: str, expected: str) -> None:
    if "--wdir $W" in text:
        text, expected = text.replace("$W", "/w"), expected.replace("$W", "/w")
    known, warnings, _ = work(shell(text))
    assert known == {"command": shell(expected), "launcher": True, "cores": 1}
    assert warnings == []


@pytest.mark.parametrize("flags", ["-c", "-ec", "-cx", "-lc"])
def test_the_flags_of_a_shell_stay(flags: str) -> None:
    known, _, _ = work(["/bin/bash", "-o", "pipefail", flags, "time -p mpirun -np 2 pi"])
    assert known["command"] == ["/bin/bash", "-o", "pipefail", flags, "time -p flux run -N2 -n2 pi"]


def test_kubernetes_expands_the_launchers_words_first() -> None:
    env = {"env": [{"name": "NP", "value": "2"}]}
    known, _, _ = work(["mpirun", "-np", "$(NP)", "echo", "$$(NP)", "$(X)"], launcher=env)
    assert (known["tasks"], known["command"]) == (2, ["echo", "$(NP)", "$(X)"])


UNKNOWN = "which is not known here: drop it, or start the program by `flux run` (option {})"
NO_SSH = f", and no host here has SSH: {run_time.BY_HOSTLIST}"
REFUSED: dict[str, tuple[Any, str]] = {
    "an option": ("mpirun --foo 1 pi", "mpirun has --foo, " + UNKNOWN.format("--foo")),
    "an option of another MPI": ("mpirun -ppn 2 pi", "mpirun has -ppn, " + UNKNOWN.format("-ppn")),
    "a placement": ("mpirun --map-by dist pi", "mpirun has --map-by dist, " + UNKNOWN.format("--map-by")),
    "parts of a node": (
        "mpirun --map-by ppr:1:socket pi",
        "mpirun has --map-by ppr:1:socket: Flux places tasks by node; give ppr:N:node",
    ),
    "a modifier": (
        "mpirun --map-by slot:NOLOCAL pi",
        "mpirun has --map-by slot:NOLOCAL, whose nolocal is not known here: drop it",
    ),
    "an order": (
        "mpirun --rank-by socket pi",
        "mpirun has --rank-by socket: Flux numbers tasks by node, or one node after the other; drop it",
    ),
    "hosts": ("mpirun -H a,b pi", "mpirun has -H a,b: tasks run on all nodes here; drop it"),
    "a file of hosts": ("mpirun --hostfile /h pi", "mpirun has --hostfile /h: tasks run on all nodes here; drop it"),
    "no value": ("mpirun -np", "mpirun has -np without its value"),
    "no number": ("mpirun -np x pi", "mpirun has x as a number of tasks: give at least 1"),
    "no program": ("mpirun -np 2", "mpirun has no program: give the whole command"),
    "several programs": (
        "mpirun -np 1 a : -np 1 b",
        "mpirun has a `:`, so it starts several programs: make a MiniCluster for each, or a batch",
    ),
    "too many tasks": (
        "mpirun -np 3 pi",
        "mpirun has 3 tasks on 2 workers with 1 slots each, and refuses that: raise slotsPerWorker",
    ),
    "another program": (
        "horovodrun -np 2 pi",
        "the launcher runs horovodrun, which is not known here: give mpirun or mpiexec, alone or in the text of "
        "a shell",
    ),
    "a script": (
        "bash /run.sh",
        "the launcher runs a script, /run.sh, which may call mpirun: start its program by mpirun here",
    ),
    "arguments of a shell": (
        ["sh", "-c", "mpirun $0", "pi"],
        "the launcher's shell has not one text behind -c: write its arguments into the text",
    ),
    "a text without mpirun": (
        shell("sleep 1"),
        "its shell text calls no mpirun, so the work is not known: call the program by mpirun",
    ),
    "a number of a shell beside one of a node": (
        shell("mpirun -np $NP -N 1 pi"),
        "mpirun has tasks and tasks of a node, one of which a shell makes: write both numbers out",
    ),
    "options of a shell": (
        shell("mpirun $ARGS pi"),
        "mpirun is followed by $ARGS, which may be options: write them out",
    ),
    "a quoted mpirun": (
        shell("su -c 'mpirun pi'"),
        "mpirun is an argument of another command, in \"'mpirun pi'\": call it as a command",
    ),
    "an argument": (
        shell("numactl mpirun pi"),
        "mpirun is an argument of another command, in 'mpirun': call it as a command",
    ),
    "a file of hosts in the text": (
        shell("n=$(sed -n '$=' /etc/mpi/hostfile); mpirun -np $n pi"),
        f"its shell text uses /etc/mpi/hostfile, which mpi-operator gives, and nothing here: {run_time.BY_HOSTLIST}",
    ),
    "ssh": (
        shell("until ssh -o X=y $host exit; do sleep 1; done; mpirun pi"),
        "its shell text uses ssh" + NO_SSH,
    ),
    "ssh in an expansion": (
        shell("x=$(for h in a b; do ssh $h exit; done); mpirun pi"),
        "its shell text uses ssh" + NO_SSH,
    ),
    "a here-document": (
        shell("cat > h <<EOF\nx\nEOF\nmpirun pi"),
        "its shell text has a here-document beside mpirun: make it a script in the image",
    ),
    "an open quote": (shell("mpirun 'pi"), "its shell text can't be read at \"'pi\": close the quotes"),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_understood_is_refused_by_name(words: Any, message: str) -> None:
    given = words.split() if isinstance(words, str) else words
    assert refused(job(given)) == f"mpiReplicaSpecs.Launcher: {message}"
