"""Runs a command in a node's pod with our terminal or streams, our signals, and the command's exit code."""

import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from types import FrameType

from minicluster.cluster.lead import Node
from minicluster.cluster.pods import FIND_TOOLS
from minicluster.console.signals import HANDLER_SECONDS, handle_signals, held
from minicluster.exec.input import Input
from minicluster.exec.piped import Ours, Piped, SignalHandler, code_of, failure, send
from minicluster.exec.written import EXEC_FAILED, START, Written
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.tool import text

#: Runs a command on a terminal below a shell with a key in its words, which outlives the keys that end the command
BELOW_KEY = 'trap : INT QUIT TSTP; "$@"; exit $?'
#: Sends a signal to a process, or that of a key, and all that descends from it. `ends` lets the process end the rest,
#: and gives all of them 5 s
SEND_SIGNAL = (
    FIND_TOOLS
    + r"""
pairs= root=$2 found=1
for stat in /proc/[0-9]*/stat; do
  { read -r line <"$stat"; } 2>/dev/null || continue
  rest=${line##*) } rest=${rest#* } pid=${line%% *}
  pairs="$pairs $pid:${rest%% *}"
  case $2 in
  key-*)
    { read -r line <"${stat%stat}cmdline"; } 2>/dev/null
    case $line in *"$2"*) [ $pid = $$ ] || root=$pid ;; esac
    ;;
  esac
done
all=" $root "
while [ "$found" ]; do
  found=
  for pair in $pairs; do
    case $all in *" ${pair%:*} "*) continue ;; *" ${pair#*:} "*) all="$all${pair%:*} " found=1 ;; esac
  done
done
left() { for pid in $all; do kill -s 0 $pid && return; done; } 2>/dev/null
send() { for pid in $all; do kill -s "$1" $pid; done; } 2>/dev/null
[ "$3" ] || { send "$1"; exit 0; }
kill -s "$1" "$root" || exit
for second in 1 2 3 4 5; do
  left || exit 0
  [ $second = 1 ] || send "$1"
  sleep 1
done
send KILL
exit 0
"""
)


def run(kubernetes: Kubernetes, node: Node, words: Sequence[str], ours: Ours | None = None) -> int:
    """Run a command in a node's container, and return its exit code.

    On a terminal the command has a terminal too, and Ctrl-C is a key there. Otherwise it has our standard streams, and
    gets our signals, except those that are dealt with.
    Raises CutError when the connection breaks, and StateError when it can't be run.
    """
    ours = ours or Ours(Input())
    if ours.on_terminal and is_on_terminal():
        return _on_terminal(kubernetes, node, words, ours.told)
    return _piped(kubernetes, node, words, ours)


def is_on_terminal() -> bool:
    """Return whether the commands have a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def run_program(
    kubernetes: Kubernetes, node: Node, words: Sequence[str], text: str, written: Written | None = None
) -> int:
    """Run a command whose standard input is a text, like `run` without a terminal."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        return _piped(kubernetes, node, words, Ours(Input(file), written=written or Written()))


def _piped(kubernetes: Kubernetes, node: Node, words: Sequence[str], ours: Ours) -> int:
    start = ("/bin/sh", "-c", START, "fed" if ours.stdin.is_fed else "own")
    line = kubernetes.words(*node.pod.exec_words("--stdin"), *start, *words)
    return Piped(line, partial(_signal_words, kubernetes, node), ours).run()


def _signal_words(kubernetes: Kubernetes, node: Node, name: str, process: str) -> list[str]:
    ends = "" if name == "INT" else "ends"
    return kubernetes.words(*node.pod.exec_words(), "/bin/sh", "-c", SEND_SIGNAL, "sh", name, process, ends)


def _end_of(process: "subprocess.Popen[bytes]") -> tuple[bytes, int]:
    """Wait for a process; return its standard error and its exit code. Handlers of signals run meanwhile."""
    while True:
        # no read without a limit: where data and a signal come together, it goes on before the handler runs
        with suppress(subprocess.TimeoutExpired):
            said = process.communicate(timeout=HANDLER_SECONDS)[1]
            return said, process.returncode


def _on_terminal(kubernetes: Kubernetes, node: Node, words: Sequence[str], told: SignalHandler) -> int:
    """Run a command whose kubectl has our terminal; what that writes to standard error is its own."""
    key, left = f"key-{uuid.uuid4().hex}", list[int]()

    def pass_on(process: "subprocess.Popen[bytes]", number: int, _frame: FrameType | None) -> None:
        # on a terminal kubectl gets Ctrl-C itself, and passes it on as a key
        if number != signal.SIGINT and not told(number):
            left.append(number)
            # as a terminal that goes away: a shell at work would not hear SIGTERM
            send(_signal_words(kubernetes, node, "HUP", key))
            process.send_signal(number)

    line = kubernetes.words(*node.pod.exec_words("--stdin", "--tty"), "/bin/sh", "-c", BELOW_KEY, key, *words)
    with ExitStack() as stack:
        with held():
            process = stack.enter_context(subprocess.Popen(line, stderr=subprocess.PIPE))  # noqa: S603 - words, no shell
            stack.enter_context(handle_signals(partial(pass_on, process)))
        said, code = _end_of(process)
    if left:
        return 128 + left[-1]
    if code > 0 and not EXEC_FAILED.search(said):
        raise failure(code, text(said))
    return code_of(code)
