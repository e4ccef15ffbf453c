"""``minicluster status``: a live MiniCluster at a glance, through kubectl."""

import json
import re
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

from minicluster import door
from minicluster.status import document as view
from minicluster.status.document import StatusError

#: Seconds between two looks; that kubectl has for a look at Kubernetes, and at Flux
INTERVAL = 2
GET_SECONDS = 30
EXEC_SECONDS = 20
#: What the lead's pod is asked: a JSON list of its settings and of what Flux knows
QUESTION = (
    'printf "[" && cat "$MINICLUSTER_HOME/minicluster/agent.json" && printf "," && '
    '"$MINICLUSTER_HOME/bin/flux" python "$MINICLUSTER_HOME/minicluster/state.py" && printf "]"'
)
#: Lines of kubectl's that say nothing: its log, and that what it ran said more
NOISE = re.compile(r"[EWI]\d{4} |command terminated with exit code|Defaulted container")
NEEDS = "status needs `get` and `list` of pods and `create` of pods/exec: ask for a Role that has them"


class KubectlError(StatusError):
    """What kubectl said when it failed."""

    @property
    def forbidden(self) -> bool:
        """Whether this user may not do that."""
        return re.search(r"\(Forbidden\)|is forbidden:", str(self)) is not None


@dataclass(frozen=True)
class Kubectl:
    """kubectl, for one context and namespace; None is the current one."""

    context: str | None
    namespace: str | None

    def get(self, *words: str) -> Any:
        """Return objects; None when the one that is named is not there. Raises KubectlError."""
        text = self.run(GET_SECONDS, "get", *words, "--output=json", "--request-timeout=10s")
        try:
            return json.loads(text) if text.strip() else None
        except ValueError as error:
            raise KubectlError(f"kubectl get {words[0]} printed no JSON: {error}") from None

    def run(self, seconds: float, *words: str) -> str:
        """Return what kubectl prints. Raises KubectlError, and StatusError when there is none."""
        given = {"--context": self.context, "--namespace": self.namespace}
        options = [f"{option}={value}" for option, value in given.items() if value is not None]
        try:
            done = subprocess.run(  # noqa: S603 - words, no shell
                ["kubectl", *options, *words],  # noqa: S607 - the user's own
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=seconds,
                check=False,
            )
        except FileNotFoundError:
            raise StatusError("kubectl is not in PATH: install it, https://kubernetes.io/docs/tasks/tools") from None
        except subprocess.TimeoutExpired:
            raise KubectlError(f"no answer within {seconds} s") from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip() and not NOISE.match(line)]
            raise KubectlError(lines[-1].removeprefix("error: ") if lines else f"exit code {done.returncode}")
        return done.stdout


@click.command()
@click.argument("name", metavar="RELEASE")
@click.option("-n", "--namespace", help="Where the release is; the current namespace of kubectl when not given.")
@click.option("--context", help="Context of kubectl's configuration.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="For people or programs.",
)
@click.option("-w", "--watch", is_flag=True, help=f"Show it anew every {INTERVAL} s, until Ctrl-C.")
def status(name: str, namespace: str | None, context: str | None, output: str, watch: bool) -> None:
    """Show a live MiniCluster: its size and quorum, nodes, cores, GPUs and jobs.

    Asks through kubectl. The user needs `get` and `list` of pods and `create` of pods/exec; without `get` of jobs
    the size is counted by the pods. RELEASE is the release's name, or its nameOverride.

    A node is up, drained (up, takes no jobs), missing (below the size, lost or still starting) or not started
    (above the size, up to maxSize). What is allocated on drained nodes counts, what is free there does not.

    \b
    Keys of the JSON; those from "flux" on are null until the lead's broker answers:
      name, namespace  texts
      age              seconds
      state            Suspended, Starting, Running, Complete, Failed, Gone (ended and cleaned up) or Unknown
      why              why that, "" when there is nothing to say
      size, maxSize    nodes; maxSize is null while nobody tells it
      sizeFrom         "job", or "pods" where jobs can't be read
      pods             [{ranks, reason}]: pods by phase and reason, ranks as 0-2,5
      containers       [{name, ranks, reason}]: those beside Flux that fail, also while their pods run
      flux             Flux's version
      scheduler        {name, queuePolicy, matchPolicy}; the policies are Fluxion's
      autoscaling      {min, max}; null when it is off
      quorum           {needed, reached}
      nodes            {up, drained, missing, notStarted}, numbers of nodes
      drained          [{ranks, reason}]
      missing          [{ranks, reason}]
      cores, gpus      {free, allocated, total} of the nodes that are online
      jobs             {pending, running, done, failed, canceled, timeout}; the last three are part of done
      longestWait      seconds that the first of the pending jobs has waited for resources
      bursts           {registered, up}: nodes of other clusters that may join

    \b
    Examples:
      minicluster status flux-sample
      minicluster status flux-sample -n lab --watch
      minicluster status flux-sample -o json | jq .nodes.up
    """
    kubectl = Kubectl(context, namespace)
    shown = False
    try:
        while True:
            text, error = _look(kubectl, name, output)
            if error and not shown:
                raise error
            if watch:
                click.clear()
            if error:
                door.say(str(error))
            else:
                door.write(text.encode())
            if not watch:
                return
            shown = True
            time.sleep(INTERVAL)
    except KeyboardInterrupt:
        return


def _look(kubectl: Kubectl, name: str, output: str) -> tuple[str, StatusError | None]:
    """Return what is to be printed, or the error."""
    try:
        found = view.document(see(kubectl, name))
    except StatusError as error:
        return "", error
    return (json.dumps(found, indent=2) + "\n" if output == "json" else view.table(found)), None


def see(kubectl: Kubectl, name: str) -> view.Seen:
    """Ask Kubernetes, then the lead. Raises StatusError."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        raise StatusError(f"{name!r} is no name of a MiniCluster: give the release's, of a-z, 0-9 and -")
    try:
        pods, job = _find(kubectl, name)
        if not pods and not job and (other := _of_release(kubectl, name)):
            name = other
            pods, job = _find(kubectl, name)
    except KubectlError as error:
        way = NEEDS if error.forbidden else "check KUBECONFIG, --context and --namespace"
        raise StatusError(f"{error}: {way}") from None
    if not pods and not job:
        where = f"namespace {kubectl.namespace}" if kubectl.namespace else "the current namespace"
        raise StatusError(f"there is no MiniCluster {name} in {where}: see `helm list -A` and give its -n")
    lead, state, why = view.lead(name, job, pods)
    answer = None
    if lead:
        answer, state, why = _ask(kubectl, lead)
    return view.Seen(name, datetime.now(UTC), pods, job, answer, state, why)


def _find(kubectl: Kubectl, name: str) -> tuple[dict[int, view.Pod], view.Job | None]:
    """Return the pods and the Job, or what is left of a Job that is gone. Raises KubectlError."""
    selector = f"app.kubernetes.io/instance={name},app.kubernetes.io/component=broker"
    pods = view.read_pods(kubectl.get("pods", f"--selector={selector}"))
    found = _readable(kubectl, "job", name, "--ignore-not-found")
    job = view.read_job(found) if found else None
    if not pods and not found:
        left = _readable(kubectl, "configmap", f"{name}-config", "--ignore-not-found")
        job = view.read_left(left) if left else None
    return pods, job


def _of_release(kubectl: Kubectl, release: str) -> str | None:
    """Return the name of a release's MiniCluster, which a nameOverride made another. Raises KubectlError."""
    for kind in ("jobs", "configmaps"):
        found = _readable(kubectl, kind, "--selector=app.kubernetes.io/name=minicluster")
        name = view.named_by(release, found) if found else None
        if name:
            return name
    return None


def _readable(kubectl: Kubectl, *words: str) -> Any:
    """Return objects; None when they may not be read, or there are none. Raises KubectlError."""
    try:
        return kubectl.get(*words)
    except KubectlError as error:
        if error.forbidden:
            return None
        raise


def _ask(kubectl: Kubectl, lead: view.Pod) -> tuple[view.Answer | None, str, str]:
    """Return the answer of the lead's pod, or the cluster's state without one, and why."""
    words = ("exec", lead.name, f"--container={lead.runner}", "--", "sh", "-c", QUESTION)
    try:
        return view.read_answer(kubectl.run(EXEC_SECONDS, *words)), "", ""
    except KubectlError as error:
        if error.forbidden:
            raise StatusError(f"{error}: {NEEDS}") from None
        return None, *view.silent(lead, str(error))
    except ValueError as error:
        return None, *view.silent(lead, f"it printed no JSON: {error}")
