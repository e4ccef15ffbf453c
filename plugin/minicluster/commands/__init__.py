"""The command line of ``minicluster`` outside Helm; each module has the commands of one subject."""

from importlib import import_module
from signal import SIGINT
from typing import Any

import click

from minicluster.console.signals import interruptible
from minicluster.errors import Interrupted, MiniClusterError

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
#: The modules of several commands; each of the others has the command of its name
SUBJECTS = {
    "lifecycle": ("create", "scale", "replace", "delete"),
    "status": ("status", "list", "why", "wait"),
    "nodes": ("shell", "logs", "copy"),
    "jobs": ("jobs", "output", "simulate"),
    "pictures": ("dashboard", "top"),
    "flux": ("flux", *SECTIONS["Slurm's commands"]),
    "rendering": ("template", "render", "keygen", "convert"),
    "setup": ("config", "mcp", "plugin", "chart"),
}
MODULES = {name: name for names in SECTIONS.values() for name in names}
MODULES |= {name: module for module, names in SUBJECTS.items() for name in names}


class Commands(click.Group):
    """Commands in sections, imported when they are used: all of them would cost each command 0.15 s.

    Ctrl-C ends one without an empty line: click would print one.
    """

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names."""
        return [*MODULES]

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Return a command; None when there is none of this name."""
        if name not in MODULES:
            return None
        known = vars(import_module(f"{__package__}.{MODULES[name]}")).values()
        return next(each for each in known if isinstance(each, click.Command) and each.name == name)

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
        came, why = list[int](), "interrupted"
        try:
            with interruptible() as came:
                result = super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            why = ": ".join((why, *getattr(interrupt, "__notes__", ())))
        except Interrupted as error:
            why = str(error)
        except Exception as error:
            # a terminal that is closed fails all that is still shown there
            if isinstance(error, MiniClusterError) or came in ([], [SIGINT]):
                raise
        else:
            # some end well at Ctrl-C
            if came in ([], [SIGINT]):
                return result
        raise Interrupted(why, 128 + (came or [SIGINT])[-1])


def _print_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        from minicluster.release import helm

        click.echo(f"{context.find_root().info_name}, version {helm.version()}")
        context.exit()


@click.group(
    cls=Commands,
    commands=dict.fromkeys(MODULES),  # click looks there for names that are near
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
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
