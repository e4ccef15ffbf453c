"""``minicluster keygen``: a certificate in a Secret, made once."""

import re
import shlex
import subprocess

import click

from minicluster.commands import options
from minicluster.console import streams
from minicluster.documents import yamlio
from minicluster.errors import SpecError, ToolError
from minicluster.kube.names import SUBDOMAIN
from minicluster.render import curve


@click.command("keygen")
@click.argument("name")
@options.namespace("Namespace of the Secret; by default the manifest names none.", default=None)
@click.option("--seal-with", metavar="CMD", help="Pipe the Secret through this command, and print its output.")
def command(name: str, namespace: str | None, seal_with: str | None) -> None:
    """Print a Secret with a new certificate.

    The Secret is for flux.curveCertSecret. It differs each time, so create it once. CMD runs without a shell and gets
    the Secret on standard input.

    \b
    Examples:
      minicluster keygen flux-curve -n team | kubectl create -f -
      minicluster keygen flux-curve -n team --seal-with kubeseal > flux-curve.yaml
    """
    for text in (name, namespace or name):
        if not re.fullmatch(SUBDOMAIN, text):
            raise SpecError(f"{text!r} is not a name in Kubernetes: use a-z, 0-9, - and .")
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    certificate = curve.text(name, *curve.random_keypair())
    secret = yamlio.dump(curve.secret(metadata, certificate))
    streams.write(secret if seal_with is None else seal(secret, seal_with))


def seal(secret: bytes, command: str) -> bytes:
    """Return what a command prints for a Secret. Raises ToolError when it is missing, fails or prints nothing."""
    try:
        words = shlex.split(command)
        if not words:
            raise ToolError("--seal-with is empty: give a command, e.g. kubeseal")
        # its stderr goes to the user only: it may quote the Secret
        done = subprocess.run(words, input=secret, stdout=subprocess.PIPE, check=False)  # noqa: S603 - no shell
    except ValueError as error:
        raise ToolError(f"--seal-with {command!r}: {error}") from None
    except OSError as error:
        raise ToolError(f"--seal-with {words[0]}: {error.strerror}: install it, or give its path") from None
    if done.returncode:
        raise ToolError(f"--seal-with {words[0]} failed with exit code {done.returncode}: nothing was sealed")
    if not done.stdout.strip():
        raise ToolError(f"--seal-with {words[0]} printed nothing: it must print the sealed Secret")
    return done.stdout
