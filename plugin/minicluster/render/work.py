"""The work of a cluster: what its lead does, the words that submit it, and the batch script."""

import re
import shlex
from collections.abc import Mapping

from minicluster.console import lines
from minicluster.errors import SpecError
from minicluster.render.model import MiniClusterModel

BATCH_COMMAND = ("flux", "batch")
#: Flags of `flux submit` that `flux run` lacks
ONLY_SUBMIT = ("--bcc", "--cc", "--jps", "--log", "--log-stderr", "--progress", "--wait", "--watch")
#: Those whose flags we know
DEFAULT_VERBS = (["flux", "run"], ["flux", "submit"])
NAME_FLAG = "--job-name"
#: A variable before a command; what names a program; words of a shell that name none
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
PROGRAM = re.compile(r"[\w.+-]+")
SHELL_WORDS = {
    *("if", "for", "while", "until", "case", "select", "function", "time", "sh", "bash"),
    *("exec", "eval", "set", "export", "cd", "source"),
}
#: What is around a line of a batch
BLANKS = " \t\r"
#: Around the lines of a batch: a line that isn't submitted fails the batch, as a job does that fails
BATCH_BEGIN = """\
mc_code=0
failed() {
  mc_code=$?
  echo "minicluster: line $1 of the batch failed with exit code $mc_code" >&2
}"""
BATCH_END = 'flux job wait --all || mc_code=$?\nexit "$mc_code"'


def kind(cluster: MiniClusterModel) -> str:
    """Return what the lead does once the quorum is there: idle, diagnose, launch, batch or submit."""
    runner = cluster.runner
    if runner.get("diagnostics"):
        return "diagnose"
    if not (runner.get("command") or runner.get("commands", {}).get("script")):
        return "idle"
    if runner.get("launcher"):
        return "launch"
    return "batch" if runner.get("batch") else "submit"


def submit(cluster: MiniClusterModel) -> list[str]:
    """Return the words that submit the command: prefix, verb, task flags, the user's flags.

    Raises SpecError for an open quote.
    """
    verb = _verb(cluster)
    debug = ["-vvv"] if cluster.spec["logging"]["debug"] else []
    # `flux run` prints no id, and shows the output as it comes; `flux submit --watch` shows it in large pieces
    watch = debug if is_run(cluster) else [*(debug or ["--quiet"]), "--watch"]
    return [*prefix(cluster), *verb, *_task_flags(cluster), *_name(cluster), *_mark(cluster), *watch]


def batch(cluster: MiniClusterModel) -> list[str]:
    """Return the words that submit the batch script; its output is kept for the log.

    Raises SpecError for an open quote.
    """
    output = ["-o", "output.stdout.type=kvs", "-o", "output.stderr.type=kvs"]
    return [*prefix(cluster), *BATCH_COMMAND, *_task_flags(cluster), *_mark(cluster), *output]


def prefix(cluster: MiniClusterModel) -> list[str]:
    """Return the words before those that submit or launch the work. Raises SpecError for an open quote."""
    return _words("commands.prefix", cluster.runner.get("commands", {}).get("prefix", ""))


def words_before_flags(cluster: MiniClusterModel) -> dict[str, int]:
    """Return how many words come before the task flags, by the setting that has them."""
    before = len(prefix(cluster))
    return {"mc_submit_words": before + len(_verb(cluster)), "mc_batch_words": before + len(BATCH_COMMAND)}


def is_run(cluster: MiniClusterModel) -> bool:
    """Say whether ``flux run`` runs the work."""
    return _verb(cluster)[-1:] == ["run"]


def only_submit(flags: str) -> str:
    """Return the first flag that ``flux run`` lacks, "" for none. Raises SpecError for an open quote."""
    names = (word.partition("=")[0] for word in _words("flux.optionFlags", flags))
    return next((name for name in names if name in ONLY_SUBMIT), "")


def flags(cluster: MiniClusterModel) -> list[str]:
    """Return the flags of the job that runs the work; none without work, or if flux.submitCommand is the user's own.

    Raises SpecError for an open quote.
    """
    verb = list(BATCH_COMMAND) if kind(cluster) == "batch" else _verb(cluster) if kind(cluster) == "submit" else []
    return _task_flags(cluster) if verb in (*DEFAULT_VERBS, list(BATCH_COMMAND)) else []


def _verb(cluster: MiniClusterModel) -> list[str]:
    return _words("flux.submitCommand", cluster.flux["submitCommand"])


def _task_flags(cluster: MiniClusterModel) -> list[str]:
    tasks, size = int(cluster.spec["tasks"]), cluster.all_size
    nodes = ["-N", str(size)] if tasks == 0 or tasks >= size else []
    count = ["-n", str(tasks)] if tasks else []
    return [*nodes, *count, *_words("flux.optionFlags", cluster.flux["optionFlags"])]


def _name(cluster: MiniClusterModel) -> list[str]:
    """Return the flag that names the job after its program: by itself Flux takes the shell that reads the command."""
    flags = _words("flux.optionFlags", cluster.flux["optionFlags"])
    if _verb(cluster) not in DEFAULT_VERBS or any(flag.partition("=")[0] == NAME_FLAG for flag in flags):
        return []
    return [f"{NAME_FLAG}={job_name(cluster)}"]


def job_name(cluster: MiniClusterModel) -> str:
    """Return the program of the command; the cluster's name for more than that, such as a loop or a script."""
    command = cluster.runner.get("command", "")
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError:
        words = []
    program = next((word for word in words if not ASSIGNMENT.match(word)), "")
    is_one = not isinstance(command, str) or len(lines.split(command.strip())) == 1
    name = program.rpartition("/")[2]
    return name if is_one and PROGRAM.fullmatch(name) and name not in SHELL_WORDS else cluster.name


def _mark(cluster: MiniClusterModel) -> list[str]:
    """Return the flag that marks the cluster's own work: a lead must find it in a kept queue, and after a stop."""
    again = cluster.keeps_state or cluster.spec["pod"]["onStop"] == "requeue"
    return ["--setattr=user.minicluster.work=1"] if again else []


def _words(name: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise SpecError(f"{name} is {text!r}: {error}; close the quote") from None


# The files ----------------------------------------------------------------------------------------------------


def files(cluster: MiniClusterModel) -> dict[str, str]:
    """Return the texts of the work's files by name, "" for an unused one. Raises SpecError for a wrong batch."""
    runner = cluster.runner
    command = runner.get("command", "")
    if runner.get("batch"):
        return {"batch": command if runner.get("batchRaw") else batch_script(command)}
    return {"command": command_script(command), "script": script(cluster)}


def script(cluster: MiniClusterModel) -> str:
    """Return the script that is the work, "" for none."""
    commands: Mapping[str, str] = cluster.runner.get("commands", {})
    return commands.get("script", "")


def command_script(command: str | list[str]) -> str:
    """Return a command as a shell script; a list of words replaces the shell as they are."""
    return command if isinstance(command, str) else f"exec {shlex.join(command)}\n"


def batch_script(command: str) -> str:
    """Return a batch script that submits each line as a job, and fails when one of them does.

    Each line is read by itself: one that the shell can't read says so, and neither changes nor hides the others.
    Raises SpecError for a line that is not one job.
    """
    submits = []
    for number, line in enumerate(filter(None, (line.strip(BLANKS) for line in lines.split(command))), 1):
        name = f"line {number} of the batch"
        if line.startswith("#") or line.endswith("\\") or not _words(name, line):
            raise SpecError(f"{name} is {line!r}: a line is one job; use batchRaw for anything else")
        if why := incomplete(line):
            raise SpecError(f"{name} is {line!r}: {why}, so it is not a command; quote that, or use batchRaw")
        # entrypoint.sh chooses the folder
        out, err = (f'"$FLUX_OUTPUT_DIR/job-{number}.{stream}"' for stream in ("out", "err"))
        submit = f"flux submit --flags=waitable --output={out} --error={err} {line}"
        submits.append(f"(eval {shlex.quote(submit)}) || failed {number}")
    return "\n".join([BATCH_BEGIN, *submits, BATCH_END]) + "\n"


#: What needs a shell to be understood: expansions, here-documents, bash's own quotes and tests, patterns of `case`
UNCLEAR = re.compile(r"\$[({'\"]|`|<<|\[\[|\bcase\b")
QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""")
COMMENT = re.compile(r"(?:^|(?<=[\s;&|()<>]))#.*")
#: An operator at the end that needs something after it; `;` and `&` don't
OPEN = re.compile(r"(?:&&|;;|[<>;|]&|[|<>]+)$")
#: A ( among the words of the first command, where it is neither a subshell nor a function
WITHIN = re.compile(r"[^;&|]*?(?<![;&|<>?*+@!])\(")


def incomplete(words: str) -> str:
    """Return why words after a command, such as those after `flux submit`, don't complete it; "" if they may.

    >>> incomplete("echo a |")
    'it ends with |'
    """
    if UNCLEAR.search(words):
        return ""
    plain = COMMENT.sub("", QUOTED.sub("x", words)).rstrip()
    if end := OPEN.search(plain):
        return f"it ends with {end[0]}"
    if WITHIN.match(plain) or plain.count("(") != plain.count(")"):
        return "it has ( or ) without quotes"
    return ""
