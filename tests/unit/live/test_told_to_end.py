"""SIGTERM and SIGHUP end each command within seconds, with all that it has started."""

import signal
from pathlib import Path

import pytest
from live_kubectl import Kubectl, lead
from status_samples import job

from tools.clients import until

#: Answers about objects; all else, such as a watch, a log and a command in a pod, waits for ever
KUBECTL = r"""
folder=${0%/*}
case " $* " in
*" --watch "*) ;;
*" get pods "*) exec cat "$folder/pods" ;;
*" get job "*) exec cat "$folder/job" ;;
*" get "* | *" config "*) exit ;;
esac
touch "$folder/waits"
exec sleep 300"""
HELM = r"""
case " $* " in *" version "*) echo v4.3.1; exit ;; *" list "*) exit ;; esac
touch "${0%/*}/waits"
exec sleep 300"""
COMMANDS = {
    "flux": ("flux", "mini", "--", "queue", "drain"),
    "flux run": ("flux", "mini", "--", "run", "x"),
    "shell": ("shell", "mini"),
    "output": ("output", "mini", "f1", "-f"),
    "jobs": ("jobs", "mini"),
    "status": ("status", "mini"),
    "why": ("why", "mini"),
    "support": ("support", "mini"),
    "top": ("top", "mini"),
    "copy": ("copy", "mini:/tmp/a", "."),
    "logs": ("logs", "mini", "-f"),
    "wait": ("wait", "mini", "--for", "end"),
    "scale": ("scale", "mini", "2"),
    "replace": ("replace", "mini", "--set", "size=1"),
    "delete": ("delete", "mini"),
    "create": ("create", "mini"),
    "run": ("run", "--", "x"),
}


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    made = Kubectl(tmp_path)
    made.has(job=job(), pods={"items": [lead(tmp_path)]})
    made.tool("kubectl", KUBECTL)
    made.tool("helm", HELM)
    return made


def left(mark: str) -> list[str]:
    """Return the processes that have a word in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_text(errors="replace"):
                found.append(path.with_name("cmdline").read_text().replace("\0", " "))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_ends_a_command_with_all_that_it_has_started(kubectl: Kubectl, name: str) -> None:
    number = signal.SIGHUP if name in ("logs", "shell") else signal.SIGTERM
    with kubectl.start(*COMMANDS[name]) as process:
        until((kubectl.folder / "waits").exists)
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    # all have the folder in their PATH
    assert left(str(kubectl.folder)) == []
