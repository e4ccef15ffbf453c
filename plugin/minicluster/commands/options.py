"""Options that several commands have, and the types of their values."""

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from minicluster import settings
from minicluster.cluster.find import MADE_BY_CHART, broker_pods
from minicluster.commands.given_values import GivenValues, Parsed, amount_of
from minicluster.console import lines, streams
from minicluster.errors import Interrupted, SpecError, StateError, ToolError
from minicluster.kube.kubectl import Kubernetes
from minicluster.render.constants import GROUP_LABEL

#: Seconds of the units of a duration, as Go reads it (time.ParseDuration).
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(text: str) -> float:
    """Return the seconds of a duration as Helm takes it, such as 5m or 1m30s. Raises SpecError."""
    parts = re.findall(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise SpecError(f"{text!r} is not a duration: write it with units, as 90s, 5m or 1h30m")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


duration = Parsed(_seconds, "duration")


#: Where `Words` leaves them in the context of click
WORDS_KEY = "minicluster.words"


class Words(click.Command):
    """A command whose words after ``--`` are another program's."""

    def __init__(self, *of_click: Any, words: str, missing: str = "", **more_of_click: Any) -> None:
        """Take how the usage shows them, and what to say when there are none; "" if they may be missing."""
        super().__init__(*of_click, **more_of_click)
        self.words, self.missing = words, missing

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words after the first ``--``; what comes before is our own."""
        at = args.index("--") if "--" in args else len(args)
        own, words = args[:at], args[at + 1 :]
        if self.missing and not (words or ctx.resilient_parsing or {"-h", "--help"} & set(own)):
            raise click.UsageError(self.missing.format(ctx.command_path), ctx)
        ctx.meta[WORDS_KEY] = words
        # the parser takes words away
        given = list(own)
        try:
            return super().parse_args(ctx, own)
        except click.UsageError as error:
            if words or isinstance(error, click.BadParameter) or not (others := self._words_of_another(ctx, given)):
                raise
            where = f"{ctx.command_path} … -- {shlex.join(others)}"
            raise click.UsageError(f"put -- before the command: `{where}`", ctx) from None

    def _words_of_another(self, ctx: click.Context, own: list[str]) -> list[str]:
        """Return the words from the first on that is neither an option nor an argument of ours."""
        parser = self.make_parser(ctx)
        parser.allow_interspersed_args = False
        try:
            _, rest, _ = parser.parse_args(own)
        except click.UsageError:
            return []
        return rest[sum(isinstance(each, click.Argument) for each in self.params) :]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage, with these words at its end."""
        return [*super().collect_usage_pieces(ctx), self.words]


def _seed(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> bytes | None:
    if path is None:
        return None
    with path.open("rb") as file:
        seed = streams.read(file).strip()
    if len(seed) < 16:
        raise click.UsageError("the curve seed has under 16 bytes: make one with `openssl rand -hex 32`")
    return seed


#: `--curve-seed-file FILE`, or its environment variable; gives the seed.
curve_seed = click.option(
    "--curve-seed-file",
    "seed",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="MINICLUSTER_CURVE_SEED_FILE",
    callback=_seed,
    help="Derive new certificates from this secret seed: the same seed and cluster give the same certificate.",
)


#: Of `-f`, where a release is made
VALUES_TEXT = "A values file, URL, or - for standard input, as for Helm; repeatable."

Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def together(*options: Option) -> Option:
    """Return several arguments and options as one, in their order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def place(_context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return a place, by the settings if none is given. The commands in messages name it, unless it is a root's."""
    kind = str(parameter.name).removeprefix("root_")
    value = value or settings.text(kind)
    if kind == parameter.name:
        streams.about(**{kind: value})
    return value


def context(text: str = "The context of the kubeconfig; by default the current one.") -> Option:
    """Return `--context`; "" when it is not given."""
    return click.option("--context", default="", callback=place, help=text)


def namespace(text: str, default: str | None = "", names: Sequence[str] = ("-n", "--namespace")) -> Option:
    """Return `-n`, `--namespace`."""
    # manifests, which have no cluster, have another default
    callback = place if default == "" else None
    return click.option(*names, default=default, show_default=bool(default), callback=callback, help=text)


def values(text: str) -> Option:
    """Return `-f`, `--values`: what Helm reads values from, in its order."""
    return click.option("-f", "--values", "files", multiple=True, metavar="FILE", type=GivenValues(), help=text)


def of_nodes(nodes: str) -> Option:
    """Return the options of a new release, on its nodes and values; ``nodes`` is the text of -N."""
    amount = "of each node, as its request and its limit."
    return together(
        click.option("--image", default="", help="Image of your application; by default that of the values."),
        click.option("-N", "--nodes", type=click.IntRange(min=1), help=nodes),
        click.option("--cpu", type=amount_of("cpu"), default="", metavar="QUANTITY", help=f"CPUs {amount}"),
        click.option("--memory", type=amount_of("memory"), default="", metavar="QUANTITY", help=f"Memory {amount}"),
        click.option("--gpus", type=click.IntRange(min=0), help="GPUs of each node: a limit of nvidia.com/gpu."),
        values(VALUES_TEXT),
        click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="A value, as for Helm; repeatable."),
    )


def _names(context: click.Context, _parameter: click.Parameter, begin: str) -> list[str]:
    """Return the names of the live MiniClusters, for a shell that completes NAME."""
    jobs = _ask(context, "jobs", f"--selector={MADE_BY_CHART},!{GROUP_LABEL}", "--output=name")
    return [name for line in lines.split(jobs) if (name := line.partition("/")[2]).startswith(begin)]


def _nodes(context: click.Context, _parameter: click.Parameter, begin: str) -> list[str]:
    """Return the nodes that have pods, for a shell that completes --node after NAME."""
    # click has not parsed NAME when the option still lacks its value
    name = context.params.get("name") or next(iter(context.args), "")
    if not name:
        return []
    # a group's pods, too, have the names of their hosts there
    hosts = _ask(context, "pods", f"--selector={broker_pods(name)}", "--output=jsonpath={.items[*].spec.hostname}")
    nodes = dict.fromkeys(
        host if begin.startswith(f"{name}-") else host.removeprefix(f"{name}-") for host in hosts.split()
    )
    return [node for node in nodes if node.startswith(begin)]


def _ask(context: click.Context, *words: str) -> str:
    """Return what `kubectl get` prints for a completion; nothing if it fails."""
    where = Kubernetes(context.params.get("context") or "", context.params.get("namespace") or "")
    try:
        return where.kubectl("get", *words, "--request-timeout=3s", seconds=5)
    except ToolError:
        return ""


#: The argument NAME: a MiniCluster's own name, or its release's.
cluster = click.argument("name", shell_complete=_names)
#: The same; "" when it is not given.
cluster_or_all = click.argument("name", default="", shell_complete=_names)


#: `--namespace` and `--context` of what is live
where = together(namespace("Namespace; by default the current one."), context())
#: What names a live MiniCluster
of_cluster = together(cluster, where)
no_wait = click.option(
    "--no-wait", is_flag=True, help="Fail at once if the MiniCluster can't take commands yet; do not wake it either."
)
yes = click.option("--yes", "is_sure", is_flag=True, help="Don't ask, even on a terminal.")


def agreement(is_sure: bool) -> streams.Agree:
    """Return what asks a person on a terminal, unless ``is_sure``. Scripts go on, except where more is at stake."""

    def ask(question: str, stake: streams.Stake) -> None:
        if is_sure or stake == "nothing":
            return
        if sys.stdin.isatty() and sys.stderr.isatty():
            try:
                has_agreed = click.confirm(question, err=True)
            except click.Abort:  # Ctrl-C, or the end of the input
                click.echo(err=True)
                raise Interrupted("nothing has changed") from None
            if not has_agreed:
                raise StateError("nothing has changed")
        elif stake == "more":
            raise StateError("nothing has changed, as there is no terminal to ask on: --yes agrees")

    return ask


def node(text: str) -> Option:
    """Return `--node`; "" is the lead."""
    return click.option("--node", default="", shell_complete=_nodes, help=text)


def output_of(text: str, *kinds: str) -> Option:
    """Return `-o`, `--output`, whose default is the table."""
    return click.option("-o", "--output", type=click.Choice(kinds), default="table", show_default=True, help=text)


output = output_of("A table for people, or JSON for programs.", "table", "json")


def output_dir(text: str, required: bool = False) -> Option:
    """Return `--output-dir`."""
    path = click.Path(file_okay=False, path_type=Path)
    return click.option("--output-dir", type=path, metavar="DIR", required=required, help=text)
