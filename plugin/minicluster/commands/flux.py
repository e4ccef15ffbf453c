"""``minicluster flux``: any flux command on the lead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.exec.submitted import run_flux
from minicluster.kube.kubectl import Kubernetes
from minicluster.waiting.ready import find_ready_lead

if TYPE_CHECKING:
    from minicluster.exec.upload import Upload


def upload_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --upload and --fetch."""
    upload = click.option(
        "--upload", metavar="DIR", help="Bring this folder to all nodes first, and run the program in it."
    )
    fetch = click.option(
        "--fetch",
        "fetched",
        multiple=True,
        metavar="PATTERN",
        help="With --upload: bring new and changed files of such names, as `*.csv` or out/, back after it; repeatable.",
    )
    packages = click.option(
        "--with",
        "packages",
        metavar="FILE",
        help="With --upload: install the Python packages of a requirements.txt or uv.lock there first, once.",
    )
    return upload(packages(fetch(command)))


def upload_of(given: Mapping[str, Any]) -> Upload | None:
    """Return what these options ask for; None for nothing. Raises UsageError."""
    if given["upload"] is None and not given["fetched"] and not given["packages"]:
        return None
    from minicluster.exec.upload import along  # noqa: PLC0415 - few commands need it

    return along(given)


class FluxWords(options.Words):
    """The words after ``--`` are a flux command."""

    words = "-- FLUX-COMMAND..."

    def missing(self, ctx: click.Context) -> str:
        """Return what to say when there are none."""
        return f"put -- before the flux command: {ctx.command_path} NAME -- jobs"


@click.command("flux", cls=FluxWords)
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
