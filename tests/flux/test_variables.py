"""What leads Flux and our programs astray reaches the work unchanged, however its jobs are started."""

import subprocess
from typing import Any

import pytest
from broker_clusters import Make
from broker_pods import Flux
from minicluster.lead.ask import QUESTION_WORDS, read_answer
from minicluster.lead.program import first_line
from shells import PROGRAMS, WAYS
from test_shell import shown

from tools.releases import MOUNT

QUIET: dict[str, Any] = {"logging": {"quiet": True}}
OWN = {
    "PYTHONHOME": "/opt/conda",
    "PYTHONPATH": "/tmp/own",
    "PYTHONOPTIMIZE": "2",
    "PYTHONSAFEPATH": "1",
    "SHELL": "/bin/dash",
    "GLOBIGNORE": "*~",
}
#: Modules that stop each Python that finds them
PRE = "mkdir -p /tmp/own; for name in json queue; do echo 'raise SystemExit(9)' >/tmp/own/$name.py; done"
SHOW = 'echo "$PYTHONHOME $PYTHONPATH $PYTHONOPTIMIZE $PYTHONSAFEPATH $SHELL $GLOBIGNORE"'
SHOWN = " ".join(OWN.values())


def test_jobs_have_the_variables_of_the_image(make: Make, flux: Flux) -> None:
    flux.since(57, "its own commands find the modules of PYTHONPATH")
    cluster = make(QUIET, {"cores": 1, "commands": {"pre": PRE}}, environment=OWN).start().wait_for_ready()
    ways = {**WAYS, **PROGRAMS}
    assert shown(cluster, SHOW, ways) == dict.fromkeys(ways, SHOWN)


@pytest.mark.parametrize(
    ("how", "where"),
    [
        ({}, "image"),
        ({}, "flux.environment"),
        ({"launcher": True}, "pre"),
        ({"batch": True, "batchRaw": True}, "image"),
    ],
    ids=str,
)
def test_the_work_has_a_path_without_the_folders_of_the_system(make: Make, how: dict[str, bool], where: str) -> None:
    own = {**OWN, "PATH": "/opt/app/bin"}
    names = "".join(f"export {name}='{value}'\n" for name, value in own.items())
    command = f"{SHOW}\nflux getattr size\necho $PATH\n"
    runner = {"cores": 1, "command": command, **how, "commands": {"pre": names if where == "pre" else "umask"}}
    values = {**QUIET, "flux": {"environment": own if where == "flux.environment" else {}}}
    cluster = make(values, runner, environment=own if where == "image" else {})
    assert cluster.run() == [0], cluster.lead.log
    *others, path = cluster.lead.log.splitlines()[-3:]
    assert others == [SHOWN, "1"]
    assert path.startswith(f"{MOUNT}/bin:")
    # beside it only the folders of flux itself, and Slurm's commands
    assert path.endswith(f":/opt/app/bin:{MOUNT}/slurm")
    assert "/usr/bin" not in path


def test_the_questions_of_the_commands_are_answered(make: Make) -> None:
    own = {**OWN, "PATH": "/opt/app/bin"}
    pre = f"PATH=/usr/bin:/bin\n{PRE}"
    cluster = make(QUIET, {"cores": 1, "commands": {"pre": pre}}, environment=own).start().wait_for_ready()
    words = cluster.lead.entered(*QUESTION_WORDS)
    done = subprocess.run(words, input=first_line("waiting"), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert read_answer(done.stdout).flux["version"]
