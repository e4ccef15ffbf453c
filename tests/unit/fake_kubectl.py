"""A kubectl that gives `minicluster status` the answers that a test sets."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from status_samples import SETTINGS, SHOWN_IDLE, flux, job, pod
from support import front_door

#: The answers when there are no objects
NONE = {"pods": {"items": []}, "job": None}
FORBIDDEN = (
    'Error from server (Forbidden): jobs.batch "mini" is forbidden: User "u" cannot get resource "jobs" in API '
    'group "batch" in the namespace "lab"'
)
NO_EXEC = (
    'error: unable to upgrade connection: pods "mini-0-x" is forbidden: User "u" cannot create resource "pods/exec" '
    'in API group "" in the namespace "lab"'
)
REFUSED = (
    'E1121 13:00:00.1 7 memcache.go:265] "Unhandled Error"\n'
    "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?"
)
#: The table of the cluster that answers by default
IDLE = SHOWN_IDLE.replace("12m50s", "3d4h")
FAKE = """#!/bin/sh
# answers from the file NAME, or the nth time from NAME.n if it exists
folder=${0%/*}
printf '%s\\n' "$*" >>"$folder/asked"
case " $* " in
*" get pods "*) name=pods ;;
*" get job "*) name=job ;;
*" get jobs "*) name=jobs ;;
*" get configmap "*) name=configmap ;;
*" get configmaps "*) name=configmaps ;;
*" get namespace "*) name=namespace ;;
*" get events "*) name=events ;;
*" get workloads."*) name=workloads ;;
*" get deployment "*) name=deployment ;;
*" exec "*) name=exec ;;
esac
echo >>"$folder/$name.count"
count=$(($(wc -l <"$folder/$name.count")))
[ ! -e "$folder/$name.$count" ] || name=$name.$count
. "$folder/$name"
"""
Kubectl = Callable[..., Result]


def make_kubectl(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    """Return what runs `minicluster status` with a kubectl that prints the given JSON or fails as told."""
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    (folder / "kubectl").write_text(FAKE)
    (folder / "kubectl").chmod(0o755)
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubectl"))  # a file that exists

    def run(*words: str, **answers: Any) -> Result:
        created = (datetime.now(UTC) - timedelta(hours=76, minutes=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        defaults = {
            "pods": {"items": [pod(index, created=created) for index in range(4)]},
            "job": job(created=created),
            "exec": [SETTINGS, flux()],
            **dict.fromkeys(("jobs", "configmap", "configmaps", "workloads", "events")),
            "namespace": {"kind": "Namespace"},
            **dict.fromkeys(("jobs", "configmap", "configmaps", "workloads", "events", "deployment")),
        }
        for name, answer in (defaults | answers).items():
            code, said, out = (1, answer, ">&2") if isinstance(answer, str) else (0, json.dumps(answer), "")
            say = "" if answer is None else f"cat {out} <<'END'\n{said}\nEND\n"
            (folder / name.replace("_", ".")).write_text(f"{say}exit {code}\n")
        return CliRunner().invoke(front_door, ["status", *words])

    return run


def asked(folder: Path) -> list[str]:
    """Return the command lines that kubectl got."""
    return (folder / "asked").read_text().splitlines()
