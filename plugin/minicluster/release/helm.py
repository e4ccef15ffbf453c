"""Renders and removes releases by Helm, and finds the chart that the package carries."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from minicluster.console import lines
from minicluster.documents import yamlio
from minicluster.errors import END, MiniClusterError, SpecError, ToolError
from minicluster.kube import tool
from minicluster.kube.names import RELEASE_CHARACTERS, SUBDOMAIN
from minicluster.kube.port import KubePort

#: The package's chart; in a clone it is a link to that of the repository.
CHART = (Path(__file__).parent.parent / "chart").resolve()
#: The oldest Kubernetes that the chart supports: its manifests suit any later one.
OLDEST = "1.27"
#: What it says where there is no release of a name
NOT_FOUND = "release: not found"
#: Seconds that Helm waits for the pods of a release that it removes
REMOVAL_SECONDS = 600.0


def version() -> str:
    """Return the version of the chart, which is that of the package and of the plugin."""
    chart = (CHART / "Chart.yaml").read_text(encoding="utf-8")
    return next(line.removeprefix("version:").strip() for line in lines.split(chart) if line.startswith("version:"))


def is_helm_3(environment: Mapping[str, str] | None = None) -> bool:
    """Tell whether Helm, or the one that an environment names, is of version 3. Raises ToolError."""
    return run("version", "--template={{.Version}}", env=environment).startswith(b"v3.")


def run(*words: str, stdin: str = "", env: Mapping[str, str] | None = None) -> bytes:
    """Return what a Helm command without a cluster prints; its warnings go to standard error. Raises ToolError."""
    done = tool.run("helm", words, stdin=stdin, seconds=tool.HELM_SECONDS, env=env)
    with suppress(OSError):
        sys.stderr.write(done.stderr.decode(errors="replace"))
    return done.stdout


#: Our words in an error of Helm: Helm 4's, Helm 3's, and those of a template's `fail`
OURS = (
    re.compile(rf"error on\s+minicluster: (.*?)\s*{re.escape(END.strip())}", re.DOTALL),
    re.compile(r"error output:\n(?:.*\n)?minicluster: ([^\n]*)\n: exit status \d+$", re.DOTALL),
    re.compile(r"execution error at \([^)]*\): (.*)", re.DOTALL),
)
#: What Helm says of values that our schema refuses
SCHEMA_REFUSED = re.compile(r"schema\(s\) in the following chart\(s\):\nminicluster:\n((?: *- [^\n]*(?:\n|$))+)")
#: Helm looks at each object before it makes one
NO_ROLE = re.compile(r'\broles\.rbac\.authorization\.k8s\.io (?:"[^"]*" )?is forbidden')


def explain(error: MiniClusterError) -> str:
    """Return why Helm failed, without Helm's own words around a message of the chart or the post-renderer."""
    said = str(getattr(error, "reason", error))
    if ours := next(filter(None, (pattern.search(said) for pattern in OURS)), None):
        return ours[1]
    if match := SCHEMA_REFUSED.search(said):
        from minicluster.render import schema  # noqa: PLC0415 - it is needed after a failure alone

        return schema.of_helm(match[1]) or match[1]
    if '"minicluster" for "--post-renderer"' in said:
        return (
            "Helm doesn't find the post-renderer: `minicluster plugin install` gives Helm 4 its plugin, and Helm 3 "
            "needs minicluster in PATH"
        )
    if NO_ROLE.search(said):
        return (
            f"{error}; the values ask for a Role, which the ClusterRole edit may not make: ask for admin in this "
            "namespace, or for the agent's Role and set autoscaling.rbac=false"
        )
    return str(error)


def values_text(values: Mapping[str, Any]) -> str:
    """Return values for `--values -`."""
    # Helm 4 refuses a marker before an empty map
    return yamlio.dump(dict(values)).decode().removeprefix("---")


def uninstall(kubernetes: KubePort, release: str, seconds: float, *options: str) -> None:
    """Remove a release together with its pods, within some seconds. Raises ToolError."""
    # The watcher, Helm 4's default, takes an object that it has no word of for one that is gone (4.3): legacy asks
    wait = "--wait" if is_helm_3() else "--wait=legacy"
    timeout = f"{max(1, math.ceil(seconds))}s"
    let_go(kubernetes, release, wait, "--timeout", timeout, *options, seconds=seconds + tool.HELM_SECONDS)


def let_go(kubernetes: KubePort, release: str, *options: str, seconds: float = tool.HELM_SECONDS) -> None:
    """Remove a release, and don't wait for the end of its pods. Raises ToolError."""
    kubernetes.helm("uninstall", release, "--cascade", "foreground", *options, seconds=seconds)


def check_name(name: str) -> None:
    """Raise ToolError for what can't be a release's name."""
    if len(name) > RELEASE_CHARACTERS or not re.fullmatch(SUBDOMAIN, name):
        raise ToolError(
            f"{name!r} can't be a release's name: use a-z, 0-9, - and ., at most {RELEASE_CHARACTERS} characters, "
            "the first and the last a letter or digit"
        )


def check_files(words: Sequence[str]) -> None:
    """Raise SpecError for a values file that has a key twice, of which Helm would drop the first without a word."""
    for word in words:
        option, _, files = word.partition("=")
        for file in files.split(",") if option == "--values" else ():
            if not Path(file).is_file():
                continue
            try:
                yamlio.load(Path(file).read_bytes())
            except yamlio.DuplicateKeyError as error:
                raise SpecError(f"{file} {yamlio.problem(error)}") from None
            except (OSError, yaml.YAMLError):
                continue  # Helm says what is wrong with it


@dataclass(frozen=True)
class OfflineRelease:
    """A release to render: its names, a chart, and the arguments of Helm that give its values."""

    name: str
    namespace: str
    values: Sequence[str]
    chart: str = str(CHART)
    kube_version: str | None = None  #: the chart uses this version's features; None: those that any version has

    @property
    def version(self) -> list[str]:
        """Helm's options for the version: offline, each version of Helm assumes another one of Kubernetes."""
        abilities = ["--api-versions", "batch/v1/Job"] if self.kube_version else []
        return ["--kube-version", self.kube_version or OLDEST, *abilities]


def template(release: OfflineRelease, stdin: str = "") -> bytes:
    """Return what `helm template` makes of a release: the same with any Helm, and without a cluster.

    ``stdin`` are the values of `--values -`. The version of Kubernetes is the release's, else the oldest that the chart
    supports. Raises ToolError; SpecError for a values file that has a key twice.
    """
    check_name(release.name)
    check_files(release.values)
    names = [f"--namespace={release.namespace}", "--", release.name, release.chart]
    try:
        return run("template", "--skip-tests", *release.version, *release.values, *names, stdin=stdin)
    except tool.CommandError as error:
        raise ToolError(explain(error)) from None
