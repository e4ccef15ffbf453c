"""``minicluster flux``: any flux command on the lead; ``sbatch``, ``srun`` and the others: Slurm's, which Flux runs."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from minicluster import pod, settings
from minicluster.commands import options
from minicluster.console import streams
from minicluster.errors import StateError
from minicluster.exec.submitted import run_flux
from minicluster.kube.kubectl import Kubernetes
from minicluster.status.lookup import find_only
from minicluster.waiting.ready import find_ready_lead

if TYPE_CHECKING:
    from minicluster.exec.upload import Upload

#: What each of Slurm's commands does, in Slurm's order
PURPOSES = {
    "sbatch": "Submit a script, which is a file here, as Slurm's sbatch does.",
    "srun": "Run a command as a job, as Slurm's srun does.",
    "salloc": "Run a command with nodes of its own, as Slurm's salloc does.",
    "squeue": "Show the jobs that wait and run, as Slurm's squeue does.",
    "sacct": "Show also the jobs that have ended, as Slurm's sacct does.",
    "sinfo": "Show the nodes, as Slurm's sinfo does.",
    "scancel": "Cancel jobs, as Slurm's scancel does.",
    "scontrol": "Show and change jobs and nodes, as Slurm's scontrol does.",
}
TEXT = """{purpose}

    It has Slurm's options, output and exit codes, and runs on the lead of the namespace's one MiniCluster. -M NAME
    chooses another; --namespace and --context say where.{more}

    \b
    Examples:
      {examples}
    """
#: Of those that submit
UPLOAD = """ --upload DIR brings a folder from here to
    all nodes, without what git ignores, and the job runs in it."""
EXAMPLES = {
    "sbatch": (
        "minicluster sbatch -N2 job.sh",
        "minicluster sbatch -M demo --upload . --array=1-9%3 work.sh",
    ),
    "srun": ("minicluster srun -N2 -n4 hostname",),
    "salloc": ("minicluster salloc -N2 bash",),
    "squeue": ("minicluster squeue", "minicluster squeue -M demo --me -o '%i %T'"),
    "sacct": ("minicluster sacct -o JobID,State,Elapsed,ExitCode",),
    "sinfo": ("minicluster sinfo -N -l",),
    "scancel": ("minicluster scancel 12345",),
    "scontrol": ("minicluster scontrol show job 12345",),
}


upload_options = options.together(
    click.option("--upload", metavar="DIR", help="Bring this folder to all nodes first, and run the program in it."),
    click.option(
        "--with",
        "packages",
        metavar="FILE",
        help="With --upload: install the Python packages of a requirements.txt or uv.lock there first, once.",
    ),
    click.option(
        "--fetch",
        "fetched",
        multiple=True,
        metavar="PATTERN",
        help="With --upload: bring new and changed files of such names, as `*.csv` or out/, back after it; repeatable.",
    ),
)


def upload_of(given: Mapping[str, Any]) -> Upload | None:
    """Return what these options ask for; None for nothing. Raises UsageError."""
    if given["upload"] is None and not given["fetched"] and not given["packages"]:
        return None
    from minicluster.exec.upload import along

    return along(given)


NO_WORDS = "put -- before the flux command: {} NAME -- jobs"


@click.command("flux", cls=options.Words, words="-- FLUX-COMMAND...", missing=NO_WORDS)
@options.of_cluster
@options.no_wait
@upload_options
@click.pass_context
def command(ctx: click.Context, /, name: str, namespace: str, context: str, no_wait: bool, **given: Any) -> int:
    """Run a flux command in a MiniCluster.

    It runs on the lead, and its exit code becomes that of this command. On a terminal it gets a terminal too. Otherwise
    it uses the standard streams of this command and gets its signals. After the first Ctrl-C `flux run` warns; the
    second cancels the job.

    If the MiniCluster starts or sleeps, the command waits for it, at most ten minutes.

    With --upload DIR the files of a local folder, without those that git ignores, are on all nodes that are up before
    the job, and its program runs in the folder. What has not changed is not sent again. With --fetch the files that
    `flux run` has made or changed there come back, also after a failure.

    \b
    Examples:
      minicluster flux flux-sample -- run -N2 hostname
      minicluster flux flux-sample -- submit --cc=1-100 -n1 ./work.sh
      minicluster flux flux-sample -- batch -N4 < script.sh
      minicluster flux flux-sample --upload . --fetch '*.png' -- run -N2 python train.py
    """
    kubernetes, words = Kubernetes(context, namespace), ctx.meta[options.WORDS_KEY]
    upload = upload_of(given)
    if not upload:
        return run_flux(kubernetes, name, words, streams.say, waits=not no_wait)
    upload.check_verb(words)
    upload.check()
    lead = find_ready_lead(kubernetes, name, streams.say)
    brought = upload.bring(kubernetes, lead, streams.say)
    words = [words[0], *brought.options, *words[1:]]
    code = run_flux(kubernetes, name, words, streams.say, waits=not no_wait)
    upload.fetch(kubernetes, lead, brought, streams.say)
    return code


class SlurmWords(NamedTuple):
    """The words of a command: those that say where, and those for Slurm."""

    name: str
    namespace: str
    context: str
    words: Sequence[str]
    script: str  #: that sbatch names; "" for none
    folder: str = ""  #: that is brought along; "" for none


def read(command: str, words: Sequence[str]) -> SlurmWords:
    """Return the words by the table of the command's options. Raises StateError for what Slurm has not."""
    # the programs of the pods find each other by file name
    sys.path.append(str(Path(pod.__file__).parent / "slurm"))
    options_module, tables, parse = (
        importlib.import_module(f"slurm_{name}") for name in ("options", "tables", "parse")
    )
    submits = command in options_module.SUBMITTERS
    known = options_module.options_of(command) if submits else tables.OPTIONS_OF[command]
    own = {"clusters": "M", "namespace": "", "context": "", **({"upload": ""} if submits else {})}
    table = [option for option in known if option.name not in own]
    table += [options_module.Option(name, short, "=", "", "", "") for name, short in own.items()]
    try:
        options, rest = parse.Reader(table).read(words, permute=not submits)
    except parse.SlurmError as error:
        raise StateError(f"{command}: error: {error}") from None
    where = {option.name: value for option, value in options if option.name in own}
    theirs = [
        f"--{option.name}={value}" if value or option.value == "=" else f"--{option.name}"
        for option, value in options
        if option.name not in where
    ]
    has_script = command == "sbatch" and rest and "--wrap" not in {word.partition("=")[0] for word in theirs}
    return SlurmWords(
        where.get("clusters", ""),
        where.get("namespace") or settings.text("namespace"),
        where.get("context") or settings.text("context"),
        [command, *theirs, *(["--"] if submits and rest else []), *rest],
        rest[0] if has_script else "",
        where.get("upload", ""),
    )


class SlurmCommand(click.Command):
    """A command whose words are Slurm's, but for those that say where."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words. `-h` is Slurm's."""
        if args[:1] == ["--help"]:
            click.echo(ctx.get_help())
            ctx.exit()
        ctx.params["words"] = args
        return []

    def collect_usage_pieces(self, _ctx: click.Context) -> list[str]:
        """Return the usage."""
        return ["[-M NAME] [--namespace NAMESPACE] [--context CONTEXT]", "[OPTION-OR-WORD]..."]


def _command(name: str) -> click.Command:
    def run(words: Sequence[str]) -> int:
        from minicluster.exec.slurm import Slurm, read_script
        from minicluster.exec.upload import Upload

        given = read(name, words)
        streams.about(namespace=given.namespace, context=given.context)
        kubernetes = Kubernetes(given.context, given.namespace)
        script = read_script(given.script) if given.script else None
        upload = Upload(given.folder)
        if given.folder:
            upload.check()
        lead = find_ready_lead(kubernetes, given.name or find_only(kubernetes, "-M NAME"), streams.say)
        command, *words = given.words
        if given.folder:
            words = [f"--chdir={upload.bring(kubernetes, lead, streams.say).path}", *words]
        return Slurm(kubernetes, lead, streams.say, script).run([command, *words])

    more = UPLOAD if name in ("sbatch", "srun", "salloc") else ""
    text = TEXT.format(purpose=PURPOSES[name], more=more, examples="\n      ".join(EXAMPLES[name]))
    return SlurmCommand(name, callback=run, help=inspect.cleandoc(text), add_help_option=False)


sbatch, srun, salloc, squeue, sacct, sinfo, scancel, scontrol = map(_command, PURPOSES)
