"""A kubectl that has one MiniCluster, mini, and runs the commands for its lead's pod on this machine."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner
from forks import Forked
from status_samples import RUNNING, STARTS, job, pod
from support import Done, front_door

FORBIDDEN = 'Error from server (Forbidden): {0} is forbidden: User "u" cannot {1} resource "{0}" in the namespace "lab"'
AWAY = "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?"
#: `get` prints the file NAME, or the nth time NAME.n if it exists; a watch has an error each 0.1 s, so all is read anew
KUBECTL = r"""#!/bin/sh
folder=${0%/*}
printf '%s\n' "$*" >>"$folder/asked"
case " $* " in
*" get "*" --watch "*) while echo '{"type": "ERROR", "object": {}}'; do sleep 0.1; done 2>/dev/null ;;
*" get pods "*) name=pods ;;
*" get job "*) name=job ;;
*" get jobs "*) name=jobs ;;
*" get configmap "*) name=configmap ;;
*" get events "*) name=events ;;
*" get workloads."*) name=workloads ;;
*" get namespace "*) [ -e "$folder/no-namespace" ] || echo '{"kind": "Namespace"}'; exit ;;
*" patch job "*) name=patch ;;
*" create --dry-run=server --output=json "*) name=create ;;
*" logs "*) name=logs ;;
*" version "*) name=version ;;
*" exec "*)
  if [ -e "$folder/refused" ]; then cat "$folder/refused" >&2; exit 1; fi
  while [ "$1" != -- ]; do shift; done
  shift
  # that of the container
  if [ "$1" = /bin/sh ] && [ -e "$folder/sh" ]; then shift; set -- "$folder/sh" "$@"; fi
  [ ! -e "$folder/relay" ] || . "$folder/relay"
  "$@"
  code=$?
  [ $code = 0 ] || echo "command terminated with exit code $code" >&2
  exit $code ;;
*) exit ;;
esac
count=0
[ ! -e "$folder/$name.count" ] || read -r count <"$folder/$name.count"
echo $((count += 1)) >"$folder/$name.count"
[ ! -e "$folder/$name.$count" ] || name=$name.$count
if [ -e "$folder/$name.error" ]; then cat "$folder/$name.error" >&2; exit 1; fi
[ ! -e "$folder/$name" ] || exec cat "$folder/$name"
"""
#: Commands that read and write nothing but texts of their own
QUIET = ("copy", "wait", "scale", "list", "jobs", "status")
#: A lead that runs, without its quorum yet
WAITS = {**STARTS}


def lead(folder: Path, state: Mapping[str, Any] = RUNNING, name: str = "mini-0-x", **metadata: Any) -> dict[str, Any]:
    """Return a pod of index 0, whose Flux is in a folder of this machine."""
    home = {"name": "MINICLUSTER_HOME", "value": str(folder / "home")}
    found = pod(0, state, uid=f"uid of {name}", **metadata)
    found["metadata"]["name"] = name
    return {**found, "spec": {"containers": [{"name": "mini", "env": [home]}]}}


class Kubectl:
    """The stand-in, and what `minicluster` does with it."""

    #: What a command imports itself, if it does so in many tests
    needs: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self.folder, self._first = folder, ""
        self._write("kubectl", KUBECTL)
        (folder / "home" / "bin").mkdir(parents=True)
        self.flux('printf "<%s>" "$@"')
        self.has(job=job(), pods={"items": [lead(folder)]})

    def has(self, **objects: Any) -> None:
        """Set the answers about objects: job=…, or job_2=… for the second request; a text is an error."""
        for name, found in objects.items():
            path = self.folder / name.replace("_", ".")
            if isinstance(found, str):
                path.with_name(f"{path.name}.error").write_text(found)
            path.write_text(json.dumps(found) if found and not isinstance(found, str) else "")

    def flux(self, script: str) -> None:
        """Set what flux does in the lead's pod."""
        self._write("home/bin/flux", f"#!/bin/sh\n{script}\n")

    def tool(self, name: str, script: str) -> None:
        """Make another program."""
        self._write(name, f"#!/bin/sh\n{script}\n")

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which kubectl is the stand-in."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HELM_")}
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return {**kept, "PATH": path}

    def begin_with(self, text: str) -> None:
        """Let what `start` starts begin with some Python."""
        self._first = text

    def bears_no_outage(self) -> None:
        """Let what `start` starts have no time for an outage."""
        self.begin_with("import minicluster.kube.outage\nminicluster.kube.outage.OUTAGE_SECONDS = 0\n")

    def start(self, *words: str, **how: Any) -> Forked:
        """Start `minicluster`."""
        how = {"env": self.environment, **PIPES, "text": True, **how}
        return Forked(words, needs=self.needs, first=self._first, **how)

    def run(self, *words: str, stdin: str = "") -> Done:
        """Run `minicluster` to its end: in this process, unless its own children need its streams."""
        if words[0] in QUIET and "--all" not in words:
            return self.run_here(*words)
        with self.start(*words) as process:
            out, err = process.communicate(stdin, timeout=60)
        return Done(process.returncode, out, err)

    def run_here(self, *words: str) -> Done:
        """Run `minicluster` to its end in this process, since its own children don't need its streams."""
        with patch.dict(os.environ, self.environment, clear=True):
            result = CliRunner().invoke(front_door, words)
        return Done(result.exit_code, result.stdout, result.stderr)

    def asked(self) -> list[str]:
        """Return the command lines that kubectl got."""
        return (self.folder / "asked").read_text().splitlines()


PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def say(*lines: str) -> str:
    """Return what a command writes to standard error."""
    return "".join(f"minicluster: {line}\n" for line in lines)
