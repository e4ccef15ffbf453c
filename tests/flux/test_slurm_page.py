"""Each line of docs/how-to/migrate-from-slurm.md: Flux's commands run on real Flux, and ours have such words."""

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from broker_clusters import Cluster, Make
from broker_pods import NAME, Flux
from minicluster.commands import group
from support import ROOT

from tools.releases import MOUNT

PAGE = (ROOT / "docs/how-to/migrate-from-slurm.md").read_text()
TABLES = PAGE.partition("## Start jobs")[2]
CODE = re.compile(r"`([^`]+)`")
#: Commands of Flux for a job that waits, and for one that has ended; all others are for one that runs
FOR_WAITING = ("flux job urgency", "flux update")
FOR_ENDED = ("flux job attach",)
#: Words of commands, and the minor version of flux-core that first knew them
SINCE = {"dependency=singleton": 75, "dependency=afterstart": 85}
GPU_WORDS = ("-g1", "--gpus-per-node")
SETUP = f"""
PATH={MOUNT}/bin:$PATH
cd "$(mktemp -d)"
printf '#!/bin/sh\\nhostname\\n' >job.sh
chmod +x job.sh
"""


def cells() -> Iterator[list[str]]:
    """Yield the cells of the tables' rows, without headers."""
    for table in re.findall(r"(?:^\|.*\n)+", TABLES, re.MULTILINE):
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


FLUX = [code for row in cells() for code in CODE.findall(row[1]) if code.startswith("flux ")]
OURS = [code for row in cells() for code in CODE.findall(row[-1]) if code.startswith("minicluster ")]


@pytest.fixture
def cluster(make: Make) -> Cluster:
    found = make({"size": 2, "interactive": True}, {"cores": 4, "gpus": 1}).start()
    return found.wait_for_ready()


def run(cluster: Cluster, text: str) -> str:
    done = cluster.lead.run("bash", "-c", SETUP + text)
    assert done.returncode == 0, f"{text}: {done.stdout}{done.stderr}"
    return str(done.stdout)


def trouble(cluster: Cluster, code: str) -> str:
    """Run a command, if it needs one for a job of its own, and return what is wrong; "" for nothing."""
    is_waiting, is_ended = code.startswith(FOR_WAITING), code.startswith(FOR_ENDED)
    work = "--urgency=hold -t 10 sleep inf" if is_waiting else "true" if is_ended else "--job-name=name sleep inf"
    needs_job = "JOB" in code or code == "flux pkill name"
    job = run(cluster, f"flux submit -n1 {work}").strip() if needs_job else ""
    if is_ended:
        run(cluster, f"flux job wait-event {job} clean")
    text = code.replace("JOB", job).replace("HOST", f"{NAME}-1").replace("GROUP", f"host:{NAME}-1")
    # a terminal of its own
    line = f"echo exit | script -qec {shlex.quote(text)} /dev/null" if "pty" in text else f"{text} </dev/null"
    done = cluster.lead.run("timeout", "-k", "5", "30", "bash", "-c", SETUP + line)
    if needs_job or not code.startswith("flux run"):
        run(cluster, "flux cancel --all --quiet; flux queue idle --quiet")
    return f"{text}: {done.returncode} {done.stdout}{done.stderr}" if done.returncode else ""


def test_each_command_of_flux_on_the_page_runs(cluster: Cluster, flux: Flux) -> None:
    assert len(FLUX) > 40
    lacks = [word for word, minor in SINCE.items() if flux.minor < minor]
    lacks += [] if flux.has_gpus else GPU_WORDS
    codes = [code for code in FLUX if not any(word in code for word in lacks)]
    assert [problem for code in codes if (problem := trouble(cluster, code))] == []


def test_the_script_of_the_page_runs_with_its_directives(cluster: Cluster) -> None:
    script = re.search(r"```sh\n(#!/bin/bash\n.*?)```", PAGE, re.DOTALL)
    assert script
    job = run(cluster, f"printf %s {shlex.quote(script[1])} >s.sh; flux batch --output=/tmp/out s.sh").strip()
    run(cluster, f"flux job wait-event {job} clean")
    expected = "hello 2 600.0"
    assert run(cluster, f"flux jobs -no '{{name}} {{nnodes}} {{duration}}' {job}").strip() == expected


@pytest.mark.parametrize("code", OURS)
def test_each_command_of_ours_on_the_page_has_such_words(code: str) -> None:
    _, name, *words = code.split()
    command = group.get_command(click.Context(group), name)
    assert command
    command.make_context(name, [word.replace("JOB", "f1") for word in words])
