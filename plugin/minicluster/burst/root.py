"""The root of a burst, as it is found: its values, its certificate, its lead's address, and what Flux says there."""

import json
from base64 import b64decode
from dataclasses import dataclass
from typing import Any

import yaml

from minicluster.burst import address, plan
from minicluster.burst.address import Address
from minicluster.burst.plan import Burst
from minicluster.cluster.job import recorded
from minicluster.cluster.pods import read_pod, registered
from minicluster.console import lines, streams
from minicluster.console.terminal import StyledText
from minicluster.documents import yamlio
from minicluster.errors import BurstError, KubernetesError, ToolError
from minicluster.flux import parse_idset, to_idset
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.names import CURVE_SUFFIX, OUR_PREFIX
from minicluster.render.load import load
from minicluster.render.model import MiniClusterModel


@dataclass(frozen=True)
class BurstRequest:
    """A burst that is asked for, its root, and where each of them runs."""

    root: MiniClusterModel
    kubernetes: Kubernetes  #: of the root
    burst: Burst
    target: Kubernetes  #: of the burst

    def flux(self, *words: str) -> str:
        """Return what flux prints in the lead's pod. Raises BurstError when that doesn't run."""
        pods = [read_pod(pod) for pod in self.kubernetes.pods(self.root.name, 0)]
        running = [pod for pod in pods if pod.phase == "Running"]
        if not running:
            raise BurstError(f"the lead of {self.root.name} doesn't run in {self.kubernetes}: see the pods there")
        return flux(self.root, self.kubernetes, running[-1].name, *words)

    def ranks(self, *words: str) -> set[int]:
        """Return the burst's ranks among those that flux prints as an idset."""
        return set(parse_idset(self.flux(*words))) & set(parse_idset(self.burst.ranks()))

    def online(self) -> set[int]:
        """Return the burst's ranks whose brokers have joined."""
        return self.ranks("resource", "status", "-n", "-s", "online", "-o", "{ranks}")

    def busy(self) -> set[int]:
        """Return the burst's ranks on which jobs run. Raises BurstError when Flux says nothing: jobs may run then."""
        said = self.flux("resource", "list", "-n", "-s", "all,allocated", "-o", "{state} {ranks}")
        ranks = {state: its for state, _, its in (line.partition(" ") for line in lines.split(said))}
        if "all" not in ranks:
            raise BurstError(f"Flux does not say where jobs run in {self.root.name}, and nothing is removed: try again")
        return set(parse_idset(ranks.get("allocated", "").strip())) & set(parse_idset(self.burst.ranks()))

    def drain(self, ranks: str, why: str) -> None:
        """Let no more jobs start on some ranks; the reason that Flux shows begins with `OUR_PREFIX`."""
        self.flux("resource", "drain", "--update", ranks, OUR_PREFIX + why)

    def undrain(self, reason: str, indexes: range) -> None:
        """Undrain the hosts whose drain has a reason that begins with ``reason``, so that jobs run there again."""
        drained = self._drained(reason, indexes)
        try:
            if drained:
                # Flux has `undrain --update`, which skips hosts that are not drained, only since 0.81
                self.flux("resource", "undrain", to_idset(drained))
        except ToolError:
            # somebody undrained one of them meanwhile
            if self._drained(reason, indexes) == drained:
                raise
            self.undrain(reason, indexes)

    def _drained(self, reason: str, indexes: range) -> list[int]:
        """Return the ranks of these hosts whose drain has a reason that begins with ``reason``."""
        drains = self.flux("resource", "drain", "-n", "-o", "{ranks}|{reason}")
        ranks = range(self.burst.first + indexes.start, self.burst.first + indexes.stop)
        return [rank for rank in plan.drained(lines.split(drains), reason) if rank in ranks]


def request(release: str, name: str, kubernetes: Kubernetes, values: bytes | None, target: Kubernetes) -> BurstRequest:
    """Return the root, read as by `read`, and its burst of a name. Raises BurstError if one doesn't exist."""
    cluster = read(release, kubernetes, values)
    return BurstRequest(cluster, kubernetes, plan.find(cluster, name), target)


def flux(cluster: MiniClusterModel, kubernetes: Kubernetes, pod: str, *words: str) -> str:
    """Return what flux prints in a pod of a cluster, or of its burst. Raises ToolError."""
    return kubernetes.kubectl("exec", pod, "--", f"{cluster.mount}/bin/flux", *words)


def read(release: str, kubernetes: Kubernetes, values: bytes | None) -> MiniClusterModel:
    """Return the root, from its release or from a file of its values.

    Raises BurstError when the release can't be read, SpecError for values that are not a MiniCluster's.
    """
    root = _release_values(release, kubernetes) if values is None else parse_values(values)
    name = str(root.get("nameOverride") or release)
    groups = root.get("groups") or []
    if values is None and not all(each.get("maxSize") for each in (root, *groups)):
        # an unset maxSize is the size at the install, which may have changed since
        installed = recorded(kubernetes.get("job", name))
        root["maxSize"] = int(root.get("maxSize") or installed.get("maxSize") or 0) or None
        sizes = registered(installed)
        root["groups"] = [{**group, "maxSize": group.get("maxSize") or sizes.get(group["name"])} for group in groups]
    return load({"metadata": {"name": name, "namespace": kubernetes.namespace}, "spec": root})


def parse_values(text: bytes) -> dict[str, Any]:
    """Return the values in a file. Raises BurstError when it is not a map in YAML."""
    try:
        values_read = yamlio.load(text)
    except yaml.YAMLError as error:
        raise BurstError(f"the root's values file {yamlio.problem(error)}") from None
    if values_read is None:
        raise BurstError("the root's values are empty: see why nothing has written them")
    if not isinstance(values_read, dict):
        raise BurstError(f"the root's values are a {type(values_read).__name__}: they must be a map")
    return values_read


def _release_values(release: str, kubernetes: Kubernetes) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(kubernetes.helm("get", "values", release, "--all", "--output=json"))
    except (ToolError, ValueError) as error:
        raise BurstError(
            f"the root {release} in {kubernetes} can't be read: {error}; --root-namespace and --root-context say where "
            "it is"
        ) from None
    return values


def find_address(request: BurstRequest, given: str | None) -> Address:
    """Return the lead's address from outside: the given one, else that of the root's values, else of its Service.

    Asks Kubernetes only for what the address lacks. Raises BurstError.
    """
    root, kubernetes = request.root, request.kubernetes
    expose = root.flux["bursting"]["expose"]
    given = given or expose["address"]
    if given and address.has_port(given):
        return Address.parse(given, 0)
    service = kubernetes.get("service", f"{root.name}-lead") if expose["type"] or not given else {}
    if given:
        return Address.parse(given, address.service_port(root, service))
    pod: dict[str, Any] = next(iter(kubernetes.pods(root.name, 0)), {})
    try:
        node = kubernetes.get("node", pod["spec"]["nodeName"])
    except (KeyError, KubernetesError):
        node = {}  # a user of the namespace may not be allowed to read Kubernetes nodes
    return address.of_service(root, service, pod, node)


def find_certificate(request: BurstRequest, lead: Address) -> str:
    """Return the root's certificate, and try it at the lead's address.

    Raises BurstError when the program there has another certificate. If nothing answers, there is only a warning: the
    burst may reach an address that this machine doesn't.
    """
    certificate = _certificate(request)
    match address.probe(str(lead), certificate):
        case address.Handshake.OTHER:
            raise BurstError(
                f"what answers at {lead} has another certificate than {request.root.name}: give the --address of its "
                f"lead; see the Services in {request.kubernetes}"
            )
        case address.Handshake.NONE:
            text = f"warning: no lead answers at {lead} from here; the burst must reach it: one TCP port"
            streams.say(StyledText(text, "waits"))
    return certificate


def _certificate(request: BurstRequest) -> str:
    values = request.root.flux
    if values["curveCert"]:
        return str(values["curveCert"])
    name = values["curveCertSecret"] or request.root.name + CURVE_SUFFIX
    data = request.kubernetes.get("secret", name).get("data", {})
    if "curve.cert" not in data:
        raise BurstError(
            f"there is no Secret {name} with curve.cert in {request.kubernetes}: is the root installed there?"
        )
    try:
        return b64decode(data["curve.cert"]).decode()
    except ValueError:
        raise BurstError(
            f"the Secret {name} in {request.kubernetes} has a curve.cert that is not text: put the root's "
            "certificate there"
        ) from None
