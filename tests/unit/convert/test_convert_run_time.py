"""What mpirun and mpi-operator give at run time: names of pods are converted, what is not here is refused by name."""

import re
from typing import Any

import pytest
from minicluster.convert.mpijob import run_time
from minicluster.convert.mpijob.run_time import Item
from mpi_jobs import converted, job, refused, shell
from support import ROOT

PAGE = ROOT / "docs" / "how-to" / "migrate-from-mpi-operator.md"
MARKED = re.compile(r"(<!-- run time -->\n).*?(<!-- end -->)", re.DOTALL)
LAUNCHER = "mpiReplicaSpecs.Launcher"
RENAMED = "names of mpi-operator's pods are those of the hosts here: "


#: What stands in no variable: rows of the table alone
NO_VARIABLES = (
    Item(
        ("JOB-worker-N", "JOB-worker-N.JOB", "JOB-worker-N.JOB.NAMESPACE.svc"),
        run_time.BY_OPERATOR,
        "converted: `JOB-N.JOB`",
    ),
    Item(("JOB-launcher",), run_time.BY_OPERATOR, "converted: the first node, `JOB-0.JOB`"),
    Item(("ssh", "scp"), run_time.BY_OPERATOR, f"refused: {run_time.BY_HOSTLIST}"),
    Item(
        ("training.kubeflow.org/replica-index",),
        run_time.BY_OPERATOR,
        "converted: the index that Kubernetes gives the pod",
    ),
    Item(
        run_time.OF_GPUS,
        f"{run_time.BY_OPERATOR}: empty, in the launcher",
        "dropped where they hide GPUs: tasks run where the launcher does",
    ),
    Item(("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"), "your text", "kept; names in it are converted"),
)


def table() -> str:
    """Return the table of the page, in Markdown."""
    rows = [["At run time", "Given by", "Here"], ["---", "---", "---"]]
    for item in (*run_time.ITEMS, *NO_VARIABLES):
        names = ", ".join(f"`{name}`" for name in item.names)
        rows.append([names, item.by, item.here or f"refused: {item.way}"])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def test_the_page_has_the_table_of_what_a_program_reads_at_run_time(update_golden: bool) -> None:
    text = PAGE.read_text(encoding="utf-8")
    expected = MARKED.sub(lambda match: f"{match[1]}\n{table()}\n{match[2]}", text)
    assert table() in expected
    if update_golden:
        PAGE.write_text(expected, encoding="utf-8")
        text = expected
    assert text == expected, f"{PAGE} differs: see --update-golden"


#: Words with names of the operator's pods, and what they become; also of a job whose launcher is a worker
NAMES = {
    "a-worker-1": ("a-1.a", "a-2.a"),
    "a-worker-1.a": ("a-1.a", "a-2.a"),
    "MASTER_ADDR=a-worker-0.a.default.svc": ("MASTER_ADDR=a-0.a.default.svc", "MASTER_ADDR=a-1.a.default.svc"),
    "tcp://a-worker-10.a.n.svc.cluster.local:29500": (
        "tcp://a-10.a.n.svc.cluster.local:29500",
        "tcp://a-11.a.n.svc.cluster.local:29500",
    ),
    "a-worker-0,a-worker-1": ("a-0.a,a-1.a", "a-1.a,a-2.a"),
    "a-launcher:8080": ("a-0.a:8080", "a-0.a:8080"),
    "data-worker-1 x-a-worker-1 /logs/a-launcher.log b.a-worker-1": (
        ("data-worker-1 x-a-worker-1 /logs/a-launcher.log b.a-worker-1",) * 2
    ),
}


@pytest.mark.parametrize("leads", [False, True], ids=["launcher", "launcher as worker"])
@pytest.mark.parametrize("word", NAMES)
def test_names_of_the_operators_pods_become_those_of_the_hosts(word: str, leads: bool) -> None:
    given = {
        "worker": {"env": [{"name": "PEER", "value": word}, {"name": "LATE", "value": f"$(X){word}"}]},
        "pod": {"initContainers": [{"name": "w", "image": "i", "command": ["nc", word]}]},
        "runLauncherAsWorker": leads,
    }
    expected = NAMES[word][leads]
    text = f"until getent hosts {word}; do sleep 1; done; mpirun pi"
    for words, command in ((["mpirun", "pi", word], ["pi", expected]), (shell(text), None)):
        values, _, notes = converted(job(words, **given))
        runner, template = values["containers"][0], values["pod"]["template"]["spec"]
        if command:
            assert runner["command"] == command
        else:
            assert runner["command"][-1].startswith(f"until getent hosts {expected}; do sleep 1; done; flux run ")
        assert runner["environment"] == {"PEER": expected}
        if not word.startswith("data"):
            assert template["containers"][0]["env"][0]["value"] == f"$(X){expected}"
        assert template["initContainers"][0]["command"] == ["nc", expected]
        assert [note.startswith(RENAMED) for note in notes] == ([] if word == expected else [True])


def test_the_note_has_each_name_once() -> None:
    _, _, notes = converted(job(["mpirun", "-x", "A=a-worker-0", "pi", "a-worker-0", "a-worker-1.a"]))
    assert notes == [f"{RENAMED}a-worker-0 is a-0.a, a-worker-1.a is a-1.a"]


BUILT = {
    "a-worker-$i.a": "a-worker-$i.a",
    "a-worker-{0..3}": "a-worker-{0..3}",
    "${JOB}-worker-0": "${JOB}-worker-0",
    "$JOB-launcher.x": "$JOB-launcher.x",
    "$(J)-worker-0": "$(J)-worker-0",
    "*launcher*": "*launcher*",
    "a-worker": "a-worker",
}


@pytest.mark.parametrize("word", BUILT)
def test_a_name_that_a_shell_builds_is_refused(word: str) -> None:
    end = f" names mpi-operator's pods by {BUILT[word]}: here the hosts are a-0.a and so on, write names out"
    assert refused(job(shell(f"wait_for {word}; mpirun pi"))) == f"command of the container mpi{end}"
    env = [{"name": "PEER", "value": word}]
    assert refused(job(["mpirun", "pi"], worker={"env": env})).endswith(end)


@pytest.mark.parametrize("name", sorted(run_time.NOT_HERE))
def test_what_is_not_given_here_is_refused_where_a_text_reads_it(name: str) -> None:
    item = run_time.NOT_HERE[name]
    read = name if name.startswith("/") else f"${{{name}}}"
    end = f" uses {name}, which {item.by} gives, and nothing here: {item.way}"
    assert refused(job(shell(f'test -n "{read}"; mpirun pi'))) == f"{LAUNCHER}: its shell text{end}"
    assert refused(job(["mpirun", "pi", read])) == f"{LAUNCHER}: mpirun's program{end}"
    text = f"import os; os.environ['{name}']"
    assert refused(job(["mpirun", "python3", "-c", text])) == f"{LAUNCHER}: mpirun's program{end}"
    env = [{"name": "A", "value": read}]
    assert refused(job(["mpirun", "pi"], worker={"env": env})) == f"environment of the container mpi{end}"


@pytest.mark.parametrize(
    "text",
    [
        "unset OMPI_MCA_plm_rsh_args; mpirun pi",
        "export OMPI_MCA_plm_rsh_args=-v K_MPI_JOB_ROLE=x; mpirun pi",
        "mpirun bash -c 'echo ${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-$PMI_ID}}'",
        "mpirun --hostfile $OMPI_MCA_orte_default_hostfile pi",
        "mpirun -x I_MPI_PERHOST pi",
        "echo K_MPI_JOB_ROLE; HYDRA_FULL_ERROR=1 mpirun pi $HYDRA_FULL_ERROR",
    ],
)
def test_a_text_that_sets_or_falls_back_to_a_variable_is_converted(text: str) -> None:
    converted(job(shell(text)))


def test_variables_for_a_launcher_without_tasks_are_dropped() -> None:
    env = {
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "NVIDIA_VISIBLE_DEVICES": "",
        "CUDA_VISIBLE_DEVICES": "-1",
        "NVIDIA_DRIVER_CAPABILITIES": "compute",
    }
    lead = {"env": [{"name": name, "value": value} for name, value in env.items()]}
    values, _, notes = converted(job(["mpirun", "pi"], launcher=lead))
    assert values["containers"][0]["environment"] == {"NVIDIA_DRIVER_CAPABILITIES": "compute"}
    place = f"{LAUNCHER}.template.spec.containers[0].env"
    assert notes == [f"{place}.{name}: is dropped: it is for a launcher without tasks" for name in list(env)[:3]]


WAY = (
    "there is no launcher's pod: drop it if it waits for the workers, since the work starts when all nodes are up, or "
    "add it to mpiReplicaSpecs.Worker.template.spec.{}: each pod runs it"
)


@pytest.mark.parametrize("key", ["initContainers", "containers"])
def test_another_container_of_the_launcher_is_refused_unless_the_workers_have_it(key: str) -> None:
    document = job(["mpirun", "pi"])
    replicas = document["spec"]["mpiReplicaSpecs"]
    more = {"name": "fetch", "image": "i", "command": ["fetch"]}
    for kind in ("Launcher", "Worker"):
        replicas[kind]["template"]["spec"].setdefault(key, [])
    replicas["Launcher"]["template"]["spec"][key].append(more)
    assert refused(document) == f"{LAUNCHER}.template.spec.{key} has fetch, and {WAY.format(key)}"
    replicas["Worker"]["template"]["spec"][key].append(dict(more))
    values, _, _ = converted(document)
    assert "fetch" in str(values)


def test_the_pods_own_fields_are_those_of_kubernetes_job() -> None:
    label = "metadata.labels['training.kubeflow.org/replica-index']"
    paths: dict[str, Any] = {"INDEX": label, "POD": "metadata.name"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in paths.items()]
    values, warnings, notes = converted(job(["mpirun", "pi"], worker={"env": env}))
    found = values["pod"]["template"]["spec"]["containers"][0]["env"]
    assert [one["valueFrom"]["fieldRef"]["fieldPath"] for one in found] == [
        "metadata.labels['batch.kubernetes.io/job-completion-index']",
        "metadata.name",
    ]
    place = "mpiReplicaSpecs.Worker.template.spec.containers[0].env"
    assert notes == [f"{place}.INDEX: is the index that Kubernetes gives the pod"]
    assert warnings[0] == f"{place}.POD ends with random characters here: the hostname ends with the index"
