"""The command line of ``minicluster`` outside Helm: one module for each command, with a function ``command``."""

from signal import SIGINT
from typing import Any

import click

from minicluster.commands.lazy import LazyGroup
from minicluster.console.signals import interruptible
from minicluster.errors import Interrupted

#: The sections of `--help`, and the commands in each: there is no other list of them
SECTIONS = {
    "Everyday commands": (
        "create",
        "run",
        "flux",
        "shell",
        "status",
        "why",
        "dashboard",
        "top",
        "jobs",
        "output",
        "logs",
        "wait",
        "copy",
        "scale",
        "delete",
        "list",
    ),
    "Slurm's commands": ("sbatch", "srun", "salloc", "squeue", "sacct", "sinfo", "scancel", "scontrol"),
    "Larger changes and bursts": ("replace", "burst", "simulate"),
    "Rendering and GitOps": ("template", "render", "argocd", "keygen", "convert"),
    "Setup and help": ("config", "mcp", "support", "plugin", "chart"),
}
#: The module of each command, where it is not the command's name: that of `list` would hide Python's own
MODULES = {name: name for names in SECTIONS.values() for name in names}
MODULES |= {"list": "listing", **dict.fromkeys(SECTIONS["Slurm's commands"], "slurm")}


class Commands(LazyGroup):
    """Commands in sections, which Ctrl-C ends without an empty line: click would print one."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by their sections, and then the options."""
        columns = formatter.width - 6 - max(map(len, MODULES))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                subcommands = [(name, self.get_command(ctx, name)) for name in names]
                formatter.write_dl([(name, each.get_short_help_str(columns)) for name, each in subcommands if each])
        click.Command.format_options(self, ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Raises Interrupted for Ctrl-C, and for the other signals that end a program."""
        came: list[int] = []
        try:
            with interruptible() as came:
                result = super().invoke(ctx)
        except KeyboardInterrupt:
            why = "interrupted"
        except Interrupted as error:
            why = str(error)
        else:
            # some end well at Ctrl-C
            if came in ([], [SIGINT]):
                return result
            why = "interrupted"
        raise Interrupted(why, 128 + (came or [SIGINT])[-1])


def _print_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        from minicluster.release import helm  # noqa: PLC0415 - brings YAML, which costs each command 12 ms

        click.echo(f"{context.find_root().info_name}, version {helm.version()}")
        context.exit()


@click.group(
    cls=Commands, modules=MODULES, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def group(context: click.Context) -> None:
    """Flux Framework on Kubernetes as a plain Helm release.

    Helm calls it without arguments, as the post-renderer of the minicluster chart.

    \b
    Examples:
      minicluster run -N 2 -- hostname
      helm install flux-sample "$(minicluster chart path)" --post-renderer minicluster
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
