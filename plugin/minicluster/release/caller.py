"""The Helm command that calls the post-renderer: its release, namespace, cluster and Kubernetes version.

Neither Helm tells a post-renderer any of this, so it is read from the command lines of the processes above this one.
"""

import os
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from minicluster.console import streams
from minicluster.errors import CurveError, one_line
from minicluster.render.model import MiniClusterModel

#: How far above Helm is at most: a plugin of Helm 4 is run by a shell, and a wrapper may be in between
GENERATIONS = 4
#: Helm's options for the cluster that have a value, and the variables by which another Helm gets them
CLUSTER_OPTIONS = {
    "--kubeconfig": "KUBECONFIG",
    "--kube-context": "HELM_KUBECONTEXT",
    "--kube-apiserver": "HELM_KUBEAPISERVER",
    "--kube-token": "HELM_KUBETOKEN",
    "--kube-as-user": "HELM_KUBEASUSER",
    "--kube-ca-file": "HELM_KUBECAFILE",
    "--kube-tls-server-name": "HELM_KUBETLS_SERVER_NAME",
    "--kube-insecure-skip-tls-verify": "HELM_KUBEINSECURE_SKIP_TLS_VERIFY",
    "--namespace": "HELM_NAMESPACE",
}
#: Another that may come several times; its variable splits names at commas
GROUP_OPTION = "--kube-as-group"
#: Options of `helm template` that decide which features of Kubernetes the chart uses
VERSION_OPTIONS = ("--kube-version", "--api-versions")
SHORT_OPTIONS = {
    "-n": "--namespace",
    "-a": "--api-versions",
    "-g": "--generate-name",
    "-i": "--install",
    "-h": "--help",
}
#: Options of these commands that have no value, or one only after `=`
BARE_OPTIONS = {
    *("--atomic", "--cleanup-on-fail", "--create-namespace", "--debug", "--dependency-update", "--devel"),
    *("--disable-openapi-validation", "--dry-run", "--enable-dns", "--force", "--force-conflicts", "--force-replace"),
    *("--generate-name", "--help", "--hide-notes", "--hide-secret", "--include-crds", "--insecure-skip-tls-verify"),
    *("--install", "--is-upgrade", "--kube-insecure-skip-tls-verify", "--no-hooks", "--pass-credentials"),
    *("--plain-http", "--release-name", "--render-subchart-notes", "--replace", "--reset-then-reuse-values"),
    *("--reset-values", "--reuse-values", "--rollback-on-failure", "--server-side", "--skip-crds"),
    *("--skip-schema-validation", "--skip-tests"),
    *("--take-ownership", "--validate", "--verify", "--wait", "--wait-for-jobs"),
}


class Caller(NamedTuple):
    """A Helm command; without one, everything is empty."""

    pid: int = 0
    release: str = ""
    is_upgrade: bool = False
    has_cluster: bool = False  #: whether its chart can look up live objects
    environment: Mapping[str, str] = {}  #: for another Helm with the same cluster and namespace
    version: Sequence[str] = ()  #: options that name a version of Kubernetes
    groups: Sequence[str] = ()  #: options for another Helm that acts for the same groups
    hands_all_over: bool = False  #: whether it called this process itself, and an empty stream is all that it rendered

    @property
    def namespace(self) -> str:
        """Its namespace, if its command line or the environment names one."""
        return self.environment.get("HELM_NAMESPACE") or os.environ.get("HELM_NAMESPACE", "")

    def say(self, text: str) -> None:
        """Tell a person something on Helm's standard error, if that is a terminal or a pipe, else on our own.

        Helm shows what a post-renderer writes there to nobody, unless it fails. In a file, Helm's lines would overwrite
        ours.
        """
        with suppress(OSError):
            path = Path(f"/proc/{self.pid}/fd/2")
            mode = path.stat().st_mode
            if self.pid and (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
                with path.open("a", encoding="utf-8") as stream:
                    stream.write(f"{streams.program()}: {one_line(text)}\n")
                return
        streams.say(text)


def find() -> Caller:
    """Return the Helm command above this process; an empty Caller when there is none, or it can't be read."""
    pid = os.getppid()
    for _ in range(GENERATIONS):
        words, parent = _process(pid)
        if any(word.partition("=")[0] == "--post-renderer" for word in words):
            program = {"HELM_BIN": path} if (path := _program(pid)) else {}
            return parse(words[1:], pid, program)
        pid = parent
        if pid <= 1:
            break
    return Caller()


def check_new_keys(cluster: MiniClusterModel) -> None:
    """Raise CurveError if nobody knows whether a live MiniCluster has a certificate already.

    With a cluster, the chart has looked. A Helm command without one, such as `helm template`, installs nothing. But a
    program that has Helm in it, such as Terraform's provider, shows no command line: each of its runs would give
    running brokers another certificate.
    """
    if not (cluster.kubernetes or find().pid):
        raise CurveError(
            f"MiniCluster {cluster.name} has no certificate, and no Helm command is above this one that says where to "
            "look for a live one, so each run would make another: set flux.curveCertSecret to a Secret that "
            "`minicluster keygen` makes once"
        )


def parse(words: Sequence[str], pid: int = 0, environment: Mapping[str, str] | None = None) -> Caller:
    """Return what a command line of Helm says.

    >>> parse(["install", "a", "./chart", "-n", "team"]).namespace
    'team'
    """
    pairs = list(_options(words))
    cluster = {CLUSTER_OPTIONS[option]: value or "true" for option, value in pairs if option in CLUSTER_OPTIONS}
    version = [word for pair in pairs if pair[0] in VERSION_OPTIONS for word in pair]
    groups = [word for pair in pairs if pair[0] == GROUP_OPTION for word in pair]
    flags = dict(pairs)
    command, *names = [value for option, value in pairs if not option] or [""]
    is_upgrade = command == "upgrade" or "--is-upgrade" in flags
    release = names[0] if len(names) > 1 else ""
    # a script may have a step before this one, which failed; Helm 3 hands nothing over when it writes files
    calls_us = pid == os.getppid() and Path(flags.get("--post-renderer", "")).name == "minicluster"
    hands_all_over = calls_us and "--output-dir" not in flags
    environment = {**(environment or {}), **cluster}
    return Caller(pid, release, is_upgrade, _has_cluster(command, flags), environment, version, groups, hands_all_over)


def _has_cluster(command: str, flags: Mapping[str, str]) -> bool:
    dry_run = flags.get("--dry-run")
    if command == "template":
        return dry_run == "server" or flags.get("--validate", "false") != "false"
    return command in ("install", "upgrade") and dry_run in (None, "server", "false", "none")


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option and its value; an argument has the option ""."""
    left, flags = iter(words), BARE_OPTIONS
    for word in left:
        if not word.startswith("-"):
            # the one option that has a value in one command and none in another
            flags = BARE_OPTIONS - {"--server-side"} if word == "upgrade" else flags
            yield "", word
        elif word == "--":
            yield from (("", rest) for rest in left)
        else:
            name, is_given, value = word.partition("=")
            if not name.startswith("--") and len(name) > 2 and not is_given:
                name, is_given, value = name[:2], "=", name[2:]
            name = SHORT_OPTIONS.get(name, name)
            yield name, value if is_given or name in flags else next(left, "")


def _process(pid: int) -> tuple[list[str], int]:
    """Return the command line of a process and its parent; nothing and 0 when they can't be read."""
    with suppress(OSError, ValueError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        # the name before the fields may have spaces and parentheses
        return words, int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        command = ("ps", "-ww", "-o", "ppid=,args=", "-p", str(pid))
        parent, *words = subprocess.run(  # noqa: S603 - words, no shell
            command, capture_output=True, text=True, timeout=5, check=True
        ).stdout.split()
        return words, int(parent)
    return [], 0


def _program(pid: int) -> str:
    """Return the path of a process's program, "" when it can't be read."""
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/exe").readlink())
    return ""
