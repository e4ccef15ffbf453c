"""``minicluster support``: a report for who is to find a fault, without secrets."""

import click

from minicluster import streams
from minicluster.commands import options
from minicluster.kube.kubectl import Kubernetes
from minicluster.live.support import report

#: Longer than any fence in a log
FENCE = "`" * 6


@click.command("support")
@options.of_cluster
def command(name: str, namespace: str, context: str) -> None:
    """Print what a bug report needs, without secrets.

    Prints versions, values, status, what `why` says, and the last lines of the logs. Texts of the values that may be
    secret are hidden, in the logs too: variables, commands, scripts, annotations. So is what looks like a key. What
    else a program prints can't be known: read the report before you publish it.

    \b
    Examples:
      minicluster support flux-sample > for-the-issue.md
    """
    for part in report(Kubernetes(context, namespace), name):
        streams.write(f"### {part.title}\n\n{FENCE}\n{part.text.rstrip()}\n{FENCE}\n\n".encode())
