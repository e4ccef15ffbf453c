"""Runs a command in a node's pod with our terminal or streams, our signals, and the command's exit code."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from types import FrameType

from minicluster.cluster.node import Node
from minicluster.cluster.pods import FIND_TOOLS
from minicluster.kube.kubectl import Kubernetes
from minicluster.live.input import Input
from minicluster.live.kubectl_words import EXEC_FAILED, START
from minicluster.live.piped import Ours, Piped, Told, Written, code_of, failure, handle_signals
from minicluster.tool import text

#: Sends a signal to a process and all that descends from it. `ends` gives them 5 s: first the process may end the rest
SEND_SIGNAL = (
    FIND_TOOLS
    + r"""
pairs= all=" $2 " found=1
for stat in /proc/[0-9]*/stat; do
  { read -r line <"$stat"; } 2>/dev/null || continue
  rest=${line##*) } rest=${rest#* }
  pairs="$pairs ${line%% *}:${rest%% *}"
done
while [ "$found" ]; do
  found=
  for pair in $pairs; do
    case $all in *" ${pair%:*} "*) continue ;; *" ${pair#*:} "*) all="$all${pair%:*} " found=1 ;; esac
  done
done
[ "$3" ] || { kill -s "$1" $all 2>/dev/null; exit 0; }
kill -s "$1" "$2" || exit
for second in 1 2 3 4 5; do
  kill -s 0 $all 2>/dev/null || exit 0
  [ $second = 1 ] || kill -s "$1" $all 2>/dev/null
  sleep 1
done
kill -s KILL $all 2>/dev/null || exit 0
"""
)


def run(kubernetes: Kubernetes, node: Node, words: Sequence[str], ours: Ours | None = None) -> int:
    """Run a command in a node's container, and return its exit code.

    On a terminal the command has a terminal too, and Ctrl-C is a key there. Otherwise it has our standard streams, and
    gets our signals, except those that are dealt with.
    Raises CutError when the connection breaks, and StateError when it can't be run.
    """
    ours = ours or Ours(Input())
    if sys.stdin.isatty() and sys.stdout.isatty():
        return _Terminal(kubernetes.words(*node.pod.exec_words("--stdin", "--tty"), *words), ours.told).run()
    return _piped(kubernetes, node, words, ours)


def run_program(
    kubernetes: Kubernetes, node: Node, words: Sequence[str], text: str, written: Written | None = None
) -> int:
    """Run a command whose standard input is a text, like `run` without a terminal."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        return _piped(kubernetes, node, words, Ours(os.dup(file.fileno()), written=written or Written()))


def _piped(kubernetes: Kubernetes, node: Node, words: Sequence[str], ours: Ours) -> int:
    def signal_words(name: str, process: str) -> list[str]:
        ends = "" if name == "INT" else "ends"
        return kubernetes.words(*node.pod.exec_words(), "/bin/sh", "-c", SEND_SIGNAL, "sh", name, process, ends)

    is_fed = isinstance(ours.stdin, int) or ours.stdin.is_fed
    start = ("/bin/sh", "-c", START, "fed" if is_fed else "own")
    return Piped(kubernetes.words(*node.pod.exec_words("--stdin"), *start, *words), signal_words, ours).run()


class _Terminal:
    """kubectl with our terminal; what it writes to standard error is its own."""

    def __init__(self, words: Sequence[str], told: Told) -> None:
        self._words, self._told = words, told

    def run(self) -> int:
        """Return the exit code. Raises CutError, StateError."""
        with subprocess.Popen(self._words, stderr=subprocess.PIPE) as process:  # noqa: S603 - words, no shell

            def pass_on(number: int, _frame: FrameType | None) -> None:
                # on a terminal kubectl gets Ctrl-C itself, and passes it on as a key
                if number != signal.SIGINT and not self._told(number):
                    process.send_signal(number)

            with handle_signals(pass_on):
                said = process.stderr.read() if process.stderr else b""
                code = process.wait()
        if code > 0 and not EXEC_FAILED.search(said):
            raise failure(code, text(said))
        return code_of(code)
