"""``minicluster burst``: the values of a burst, its installation, its removal, and hosts that are no pods."""

import json
import os
import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from minicluster import door, yamlio
from minicluster.burst import machines as hosts
from minicluster.burst import plan as bursts
from minicluster.burst import probe
from minicluster.burst.plan import Address, Burst
from minicluster.commands.tools import Place, until
from minicluster.errors import BurstError, ToolError
from minicluster.release import helm
from minicluster.render.idset import parse_idset
from minicluster.render.load import load
from minicluster.render.model import MiniCluster


@dataclass(frozen=True)
class Root:
    """The root, where it runs, and the burst that is asked for."""

    cluster: MiniCluster
    place: Place
    burst: Burst

    def flux(self, *words: str) -> str:
        """Return what flux prints in the pod of the lead. Raises BurstError when it doesn't run."""
        running = [pod for pod in self.place.pods(self.cluster.name, 0) if pod["status"].get("phase") == "Running"]
        if not running:
            raise BurstError(f"the lead of {self.cluster.name} doesn't run in {self.place}: see `kubectl get pods`")
        return _flux(self.cluster, self.place, running[-1], *words)

    def ranks(self, *words: str) -> set[int]:
        """Return the ranks of the burst among those that flux prints."""
        return set(parse_idset(self.flux(*words))) & set(parse_idset(self.burst.ranks()))

    def online(self) -> set[int]:
        """Return the ranks of the burst whose brokers the lead has."""
        return self.ranks("resource", "status", "-n", "-s", "online", "-o", "{ranks}")

    def busy(self) -> set[int]:
        """Return the ranks of the burst on which jobs run."""
        return self.ranks("resource", "list", "-n", "-s", "allocated", "-o", "{ranks}")

    def undrain(self) -> None:
        """Let jobs run again on what was drained by us."""
        drains = self.flux("resource", "drain", "-n", "-o", "{ranks}|{reason}")
        ours = bursts.drained_by_us(self.burst, drains.splitlines())
        if ours:
            self.flux("resource", "undrain", "--update", ",".join(map(str, ours)))


def _flux(cluster: MiniCluster, place: Place, pod: dict[str, Any], *words: str) -> str:
    return place.kubectl("exec", pod["metadata"]["name"], "--", f"{cluster.mount}/bin/flux", *words)


@click.command()
@click.argument("release")
@click.argument("burst")
@click.option("-f", "--values", type=click.File("rb"), help="The values of the root, instead of those of its release.")
@click.option("--root-context", default="", help="Context of the kubeconfig where the root runs.")
@click.option("--root-namespace", default="", help="Namespace of the root.")
@click.option("--address", metavar="HOST[:PORT]", help="Where the burst reaches the lead; else its Service says it.")
@click.option("--size", type=int, help="Hosts to begin with; else all that the root has registered.")
@click.option("--secret-file", type=click.Path(dir_okay=False, path_type=Path), help="Write the burst's Secret here.")
@click.option("--install", is_flag=True, help="Install the burst, or change its size, and wait until it has joined.")
@click.option("--remove", is_flag=True, help="Drain the burst's hosts, wait for their jobs, and uninstall it.")
@click.option("--for-hosts", type=click.Path(file_okay=False, path_type=Path), help="Write the files of hosts here.")
@click.option("--kube-context", default="", help="Context where the burst runs.")
@click.option("-n", "--namespace", default="", help="Namespace of the burst.")
@click.option("--burst-values", multiple=True, type=click.Path(exists=True), help="Values of the burst's own.")
@click.option("--chart", help="The chart; else the one that this package comes with.")
@click.option("--timeout", type=click.IntRange(0), default=600, show_default=True, help="Seconds to wait.")
def burst(release: str, burst: str, **options: Any) -> None:
    """Make BURST of the root RELEASE: values by which it can be installed, printed, unless told to do more.

    BURST is a name in the root's flux.bursting.clusters, or hosts of its flux.bursting.hostlist. The root is where
    --root-context and --root-namespace say, the burst where --kube-context and --namespace say.

    \b
    Examples:
      minicluster burst flux burst-0 --secret-file secret.yaml > burst-0-values.yaml
      minicluster burst flux burst-0 --install --kube-context other --namespace jobs
      minicluster burst flux burst-0 --remove --kube-context other --namespace jobs
      minicluster burst flux 'vm-[0-3]' --for-hosts folder
    """
    ways = [name for name in ("install", "remove", "for_hosts") if options[name]]
    if len(ways) > 1:
        raise click.UsageError("--install, --remove and --for-hosts are different things to do: give one of them")
    there = Place(options["kube_context"], options["namespace"])
    cluster, place = read_root(release, options)
    root = Root(cluster, place, bursts.find(cluster, burst))
    if options["remove"]:
        remove(root, there, options["timeout"])
        return
    address = find_address(root, options["address"])
    size = root.burst.size if options["size"] is None else options["size"]
    made = bursts.values(cluster, root.burst, size, address)
    member = bursts.member(cluster, root.burst, made)
    if options["for_hosts"]:
        certificate = checked_certificate(root, address)
        write_folder(options["for_hosts"], hosts.files(member, certificate))
        return
    if not root.burst.is_release:
        raise BurstError(f"{burst} is of flux.bursting.hostlist, so its hosts are no pods: give --for-hosts DIR")
    for need in bursts.needs(made):
        door.say(f"the burst's namespace needs the {need}")
    if options["install"]:
        install(root, there, made, checked_certificate(root, address), options)
        return
    if options["secret_file"]:
        certificate = checked_certificate(root, address)
        write_secret(options["secret_file"], bursts.secret(cluster, root.burst, certificate, there.namespace))
    door.write(values_text(root.burst, made, options["secret_file"]).encode())


def read_root(release: str, options: dict[str, Any]) -> tuple[MiniCluster, Place]:
    """Return the root, from its release or from a file of its values.

    Raises ToolError when helm doesn't know it, SpecError when it is none.
    """
    place = Place(options["root_context"], options["root_namespace"])
    file = options["values"]
    values = bursts.document(door.read(file)) if file else _release_values(release, place)
    name = str(values.get("nameOverride") or release)
    if not file and not values.get("maxSize"):
        # the size that it was installed with, which may have changed since
        annotations = place.get("job", name).get("metadata", {}).get("annotations", {})
        values["maxSize"] = int(json.loads(annotations.get("minicluster/frozen", "{}")).get("maxSize") or 0) or None
    metadata = {"name": name, "namespace": options["root_namespace"]}
    return load({"metadata": metadata, "spec": values}), place


def _release_values(release: str, place: Place) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(place.helm("get", "values", release, "--all", "-o", "json"))
    except (ToolError, ValueError) as error:
        raise BurstError(
            f"{release} in {place} can't be read: {error}; --root-namespace and --root-context say where it is"
        ) from None
    return values


def find_address(root: Root, given: str | None) -> Address:
    """Return where the lead is reached from outside: as given, as the root's values have it, else as its Service says.

    Nothing is asked for HOST:PORT, nor where the root has no Service.
    """
    expose = root.cluster.flux["bursting"]["expose"]
    given = given or expose["address"]
    if given and re.search(r"[^:\]]:[0-9]+$|\]:[0-9]+$", given):
        return Address.parse(given, 0)
    service = root.place.get("service", f"{root.cluster.name}-lead") if expose["type"] or not given else {}
    if given:
        return Address.parse(given, bursts.service_port(root.cluster, service))
    pod: dict[str, Any] = next(iter(root.place.pods(root.cluster.name, 0)), {})
    try:
        node = root.place.get("node", pod["spec"]["nodeName"])
    except (KeyError, ToolError):
        node = {}  # who may use a namespace may not look at nodes
    return bursts.lead_address(root.cluster, service, pod, node)


def checked_certificate(root: Root, address: Address) -> str:
    """Return the root's certificate, after it was shown to the lead.

    Raises BurstError when the address has another one. Where nothing answers there is only a warning: this machine may
    not reach what the burst reaches.
    """
    certificate = _certificate(root)
    match probe.ask(str(address), certificate):
        case probe.Answer.OTHER:
            raise BurstError(
                f"what answers at {address} has another certificate than {root.cluster.name}: give the --address of "
                "its lead; see `kubectl get service`"
            )
        case probe.Answer.NONE:
            door.say(f"warning: no lead answers at {address} from here; the burst must reach it: one TCP port")
    return certificate


def _certificate(root: Root) -> str:
    flux = root.cluster.flux
    if flux["curveCert"]:
        return str(flux["curveCert"])
    name = flux["curveCertSecret"] or f"{root.cluster.name}-curve"
    data = root.place.get("secret", name).get("data", {})
    if "curve.cert" not in data:
        raise BurstError(f"there is no Secret {name} with curve.cert in {root.place}: is the root installed there?")
    return b64decode(data["curve.cert"]).decode()


def values_text(burst: Burst, made: dict[str, Any], secret_file: Path | None) -> str:
    """Return the values of a burst, below the commands that install it."""
    secret = secret_file or "the file that --secret-file writes"
    lines = [
        f"# {burst.name}: ranks {burst.ranks()} of {made['flux']['bursting']['leadBroker']['name']}",
        f"#   kubectl apply --server-side -f {secret}",
        f"#   helm install {burst.name} charts/minicluster -f {burst.name}-values.yaml --post-renderer minicluster",
    ]
    return "\n".join(lines) + "\n" + yamlio.dump(made).decode().removeprefix("---\n")


def write_secret(path: Path, secret: dict[str, Any]) -> None:
    """Write a Secret for its owner's eyes only. Raises BurstError when it can't be written."""
    _write(path, yamlio.dump(secret), 0o600)


def write_folder(folder: Path, files: list[hosts.File]) -> None:
    """Write the files of hosts. Raises BurstError when the folder has others in it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        others = sorted({path.name for path in folder.iterdir()} - set(hosts.NAMES))
        if others:
            raise BurstError(f"{folder} has other files, such as {others[0]}: give a new or empty folder")
        for name in hosts.NAMES:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise BurstError(f"{folder} can't be written: {error.strerror}") from None
    for file in files:
        _write(folder / file.name, file.text.encode(), file.mode)
    door.say(
        f"wrote {folder}: copy it to each host as {hosts.FOLDER}; {hosts.UNIT} says how to start it, as does start.sh"
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise BurstError(f"{path} is there and is no file: name a file to write")
    try:
        # a file that is there may be readable to others: it is replaced
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
    except OSError as error:
        raise BurstError(f"{path} can't be written: {error.strerror}") from None


def install(root: Root, there: Place, made: dict[str, Any], certificate: str, options: dict[str, Any]) -> None:
    """Install the burst or change its size, and wait until its hosts have joined.

    Raises BurstError when they haven't within the time, with what the first pod that hasn't says.
    """
    name = root.burst.name
    chart = options["chart"] or helm.CHART
    # first, for hosts whose brokers were killed are drained still; and a root that can't be asked is known before
    # anything is made
    root.undrain()
    secret = bursts.secret(root.cluster, root.burst, certificate)
    is_new = not there.get("secret", secret["metadata"]["name"])
    # on the server's side: else the certificate would be in an annotation too
    apply = ("apply", "--server-side", "--force-conflicts", "--field-manager=minicluster", "-f", "-")
    there.kubectl(*apply, stdin=json.dumps(secret))
    own = [word for file in options["burst_values"] for word in ("--values", str(file))]
    words = ("upgrade", "--install", name, str(chart), "--values", "-", *own, "--post-renderer", "minicluster")
    try:
        there.helm(*words, stdin=json.dumps(made))
    except ToolError:
        if is_new:
            there.kubectl("delete", "secret", secret["metadata"]["name"])
        raise
    size = int(there.get("job", name).get("spec", {}).get("completions", made["size"]))
    wanted = set(parse_idset(root.burst.ranks(size)))
    door.say(f"installed {name} in {there}: waiting for ranks {root.burst.ranks(size)} of {root.cluster.name}")
    if not until(_joined(root, there, wanted), options["timeout"]):
        missing = sorted(wanted - root.online())
        raise BurstError(
            f"{len(missing)} of {size} hosts of {name} have not joined {root.cluster.name} within "
            f"{options['timeout']} s, such as rank {missing[0] if missing else root.burst.first}: "
            f"{_reason(there, name, missing[0] - root.burst.first if missing else 0)}"
        )
    door.say(f"{name} has joined: {size} of {root.burst.size} hosts, ranks {root.burst.ranks(size)}")


def _joined(root: Root, there: Place, wanted: set[int]) -> Callable[[], bool]:
    """Return what says whether all have joined. It raises BurstError when they never will."""
    version = _version(root.flux("--version"))

    def joined() -> bool:
        if wanted <= root.online():
            return True
        pods = there.pods(root.burst.name)
        if _has_ended(there, root.burst.name):
            failed = [_index(pod) for pod in pods if pod["status"].get("phase") == "Failed"]
            raise BurstError(
                f"{root.burst.name} has ended: {_reason(there, root.burst.name, [0, *failed][-1])}; remove it before "
                "it is installed again"
            )
        running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
        try:
            theirs = _version(_flux(root.cluster, there, running[0], "--version")) if running else version
        except ToolError:
            return False  # its flux is not there yet
        if theirs[:2] != version[:2]:
            raise BurstError(
                f"{root.burst.name} has Flux {'.'.join(theirs)} and {root.cluster.name} {'.'.join(version)}, which "
                "won't talk to each other: remove it, and give it the root's view by --burst-values"
            )
        return False

    return joined


def _has_ended(there: Place, name: str) -> bool:
    conditions = there.get("job", name).get("status", {}).get("conditions", [])
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions)


def _version(text: str) -> list[str]:
    """Return the version of Flux as its parts; brokers of the same first two join each other."""
    found = re.search(r"commands:\s+(\S+)", text)
    return (found[1] if found else text.strip()).split(".")


def _index(pod: dict[str, Any]) -> int:
    return int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


def _reason(there: Place, name: str, index: int) -> str:
    """Return what is known of a pod that has not joined."""
    pods = there.pods(name, index)
    if not pods:
        return f"it has no pod; see `kubectl describe job {name}`"
    pod, status = pods[-1]["metadata"]["name"], pods[-1]["status"]
    for state in [one.get("state", {}).get("waiting", {}) for one in status.get("containerStatuses", [])]:
        if state:
            return f"pod {pod} is {state.get('reason')}: {state.get('message', 'see `kubectl describe pod`')}"
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] != "True":
            return f"pod {pod} is {status['phase']}: {condition.get('message', condition.get('reason'))}"
    lines = there.kubectl("logs", pod, "--tail=40").splitlines()
    ours = [line.removeprefix(bursts.OURS) for line in lines if line.startswith(bursts.OURS)]
    return f"pod {pod} says: {ours[-1] if ours else 'nothing'}"


def remove(root: Root, there: Place, timeout: int) -> None:
    """Drain the burst's hosts, wait until no job runs there, uninstall the burst.

    Raises BurstError when jobs still run there after the time; the hosts stay drained.
    """
    name, ranks = root.burst.name, root.burst.ranks()
    if root.burst.is_release:
        _find_release(there, name)
    root.flux("resource", "drain", "--update", ranks, f"{bursts.OURS}{name} is being removed")
    door.say(f"drained ranks {ranks} of {root.cluster.name}: waiting for the jobs that run there")
    if not until(lambda: not root.busy(), timeout):
        raise BurstError(
            f"after {timeout} s jobs still run on {name}: its hosts take no new ones; run this again, or cancel the "
            "jobs that `flux jobs` shows"
        )
    if not root.burst.is_release:
        door.say(
            f"no job runs on {name}: stop the brokers there, and `flux resource undrain {name}` before they come back"
        )
        return
    # with its pods, so that none of them is there when it is installed again
    there.helm("uninstall", name, "--cascade", "foreground", "--wait", "--timeout", f"{max(timeout, 1)}s")
    there.kubectl("delete", "secret", bursts.secret_name(root.burst), "--ignore-not-found")
    door.say(f"removed {name}; its hosts are down until it is installed again")


def _find_release(there: Place, name: str) -> None:
    """Raise BurstError when there is nothing to remove: its hosts would be drained for nothing."""
    try:
        there.helm("status", name)
    except ToolError as error:
        raise BurstError(
            f"{name} can't be removed from {there}: {error}; --namespace and --kube-context say where it is"
        ) from None
