"""The MiniCluster: its values with all defaults, and the names, paths and parts that follow from them."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from minicluster.render.constants import KUEUE_QUEUE
from minicluster.render.handover import Installed, Programs

#: Fields of the runner that a group may have in their place
RUNNER_FIELDS = ("image", "resources", "cores", "gpus")
#: Seconds for jobs to end, and then for the broker, of a grace period of 30 s or more.
KILL_SECONDS, END_SECONDS = 8, 7


class HandoverFields(NamedTuple):
    """The inputs of a cluster; ``spec`` has every key of the chart's values.yaml."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    certificate: str  #: of the live release, "" without one
    installed: Installed | None = None  #: what the live cluster that this one upgrades was installed with
    kubernetes: str = ""  #: version of the Kubernetes cluster, "" when Helm talks to none
    programs: Sequence[Programs] = ()  #: where its Jobs find their programs; () for its own ConfigMap


def may_run_flux(containers: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of the containers that may be the runner; valid values have exactly one.

    The runner is the only container, or the one with ``runFlux: true``; where none has it, the only one that doesn't
    say ``runFlux: false``. The chart's `minicluster.runnerPlace` has the same rule.
    """
    if len(containers) == 1:
        return [0]
    marked = [place for place, container in enumerate(containers) if container.get("runFlux")]
    return marked or [place for place, container in enumerate(containers) if container.get("runFlux") is not False]


class NodeGroup(NamedTuple):
    """Nodes unlike the cluster's own: a Job of the same release."""

    place: str  #: in the values, as ``groups[0]``
    name: str
    size: int
    max_size: int
    min_size: int
    autoscaling: Mapping[str, int]  #: min, max and priority; {} without an autoscaler
    properties: Sequence[str]  #: by which jobs choose its nodes, its name first
    given: Mapping[str, Any]  #: its values
    cluster: "MiniClusterModel"  #: as it would be with this group's pods alone


class MiniClusterModel(HandoverFields):
    """A validated cluster."""

    @property
    def size(self) -> int:
        """Pods at the start."""
        return int(self.spec["size"])

    @property
    def max_size(self) -> int:
        """Own hosts that the broker configuration registers."""
        return int(self.spec["maxSize"] or self.size)

    @property
    def segment_size(self) -> int:
        """Own hosts of a segment, which are near each other; 0 without segments."""
        return int(self.spec["pod"]["segments"].get("size", 0))

    @property
    def flux(self) -> Mapping[str, Any]:
        """The ``flux`` part of the spec."""
        flux: Mapping[str, Any] = self.spec["flux"]
        return flux

    @cached_property
    def runner(self) -> Mapping[str, Any]:
        """The container that runs Flux."""
        containers: list[Mapping[str, Any]] = self.spec["containers"]
        return containers[may_run_flux(containers)[0]]

    @property
    def runner_place(self) -> str:
        """Its place in the values: ``containers[0]``."""
        return f"containers[{may_run_flux(self.spec['containers'])[0]}]"

    @property
    def runner_name(self) -> str:
        """The name of that container."""
        return str(self.runner.get("name") or self.name)

    @cached_property
    def sidecars(self) -> list[Mapping[str, Any]]:
        """The other containers of the brokers' pods."""
        return [c for c in self.spec["containers"] if c is not self.runner]

    @cached_property
    def containers(self) -> Mapping[str, Mapping[str, Any]]:
        """The containers and the services, by their places in the values: ``containers[0]``, ``services[0]``."""
        return {f"{group}[{n}]": c for group in ("containers", "services") for n, c in enumerate(self.spec[group])}

    @property
    def own_containers(self) -> Mapping[str, Mapping[str, Any]]:
        """The settings of containers that the chart adds, by their places in the values."""
        flux = self.flux
        return {
            "flux.container": flux["container"],
            "agent": self.spec["agent"],
            "flux.bursting.follow": flux["bursting"]["follow"],
            "hooks": self.spec["hooks"],
        }

    @property
    def joins(self) -> bool:
        """Whether this cluster is a burst: all its pods are workers of another cluster's lead."""
        return bool(self.flux["bursting"]["leadBroker"])

    @property
    def is_multi_cluster(self) -> bool:
        """Whether the host table has hosts of several clusters."""
        bursting = self.flux["bursting"]
        return bool(self.joins or bursting["clusters"] or bursting["hostlist"])

    @cached_property
    def bursts(self) -> list[Mapping[str, Any]]:
        """The clusters that may join the root, each with a name and a size, which is the root's maxSize when unset."""
        bursting = self.flux["bursting"]
        # not `size`, which may change while the host table can't, and which differs between root and burst
        size = bursting["leadBroker"].get("size", 1) if self.joins else self.max_size
        return [
            c | {"name": c.get("name") or f"burst-{n}", "size": c.get("size", size)}
            for n, c in enumerate(bursting["clusters"])
        ]

    @cached_property
    def groups(self) -> list[NodeGroup]:
        """The groups, in the order of their ranks, which come after those of the cluster's own hosts."""
        return [self._group(f"groups[{n}]", given) for n, given in enumerate(self.spec["groups"])]

    @cached_property
    def root_groups(self) -> list[NodeGroup]:
        """The groups in the host table: its own or, for a burst, those of its root."""
        place, given = "flux.bursting.leadBroker.groups", self.flux["bursting"]["leadBroker"].get("groups", [])
        return [self._group(f"{place}[{n}]", one) for n, one in enumerate(given)] if self.joins else self.groups

    def _group(self, place: str, given: Mapping[str, Any]) -> NodeGroup:
        size = int(given.get("size", 1))
        most = int(given.get("maxSize") or max(1, size))
        scaling = given.get("autoscaling", {})
        limits = {"min": 0, "priority": 0, **scaling, "max": scaling.get("max") or most} if self.autoscaling else {}
        # a lead that comes back must not wait for nodes that were scaled away
        least = int(given.get("minSize", limits.get("min", size)))
        # these numbers are true of the cluster's own resources only
        left_out = ("cores", "gpus") if "resources" in given else ()
        runner = {key: value for key, value in self.runner.items() if key not in left_out}
        runner |= {key: given[key] for key in RUNNER_FIELDS if key in given}
        spec = {
            **self.spec,
            "size": max(1, size),
            "maxSize": most,
            "containers": [runner if one is self.runner else one for one in self.spec["containers"]],
            "pod": {**self.spec["pod"], **given.get("pod", {})},
            "groups": [],
        }
        names = list(dict.fromkeys([given["name"], *given.get("properties", ())]))
        return NodeGroup(place, given["name"], size, most, least, limits, names, given, self._replace(spec=spec))

    @property
    def all_size(self) -> int:
        """Pods at the start, with those of the groups."""
        return self.size + sum(group.size for group in self.groups)

    @cached_property
    def autoscaling(self) -> Mapping[str, Any]:
        """The autoscaling values, ``max`` resolved; empty when autoscaling is off."""
        autoscaling: Mapping[str, Any] = self.spec["autoscaling"]
        return {**autoscaling, "max": autoscaling["max"] or self.max_size} if autoscaling["enabled"] else {}

    @property
    def queue(self) -> str:
        """Name of Kueue's queue, "" for none."""
        return str(self.spec["kueue"]["queueName"] or self.spec["jobLabels"].get(KUEUE_QUEUE, ""))

    @property
    def state_claim(self) -> bool:
        """Whether Flux's state is on a claim."""
        return bool(self.spec["state"]["claimName"] or self.spec["state"]["capacity"])

    @property
    def keeps_state(self) -> bool:
        """Whether the queue outlives the lead's pod."""
        return bool(self.spec["archive"]["path"] or self.state_claim)

    @property
    def service(self) -> str:
        """Name of the headless Service, part of every host's domain."""
        return str(self.spec["network"]["headlessName"] or self.name)

    @property
    def mount(self) -> str:
        """Folder of the cluster's files in the pods."""
        return str(self.flux["container"]["mountPath"])

    @property
    def files(self) -> str:
        """Folder of the ConfigMap in the pods."""
        return f"{self.mount}/minicluster"

    @property
    def state(self) -> str:
        """Folder that a broker writes to, with flux-operator's layout."""
        return f"{self.mount}/config"


def log_attributes(cluster: MiniClusterModel, *, to_file: bool) -> dict[str, object]:
    """Return the attributes of a broker's log on standard error; ``to_file`` if a file has what is not there."""
    own: int | None = cluster.flux["logLevel"]
    # errors, or information, as syslog(3) counts
    level = own if own is not None else 3 if to_file else 6
    return {"log-stderr-mode": "local", "log-stderr-level": 0 if cluster.spec["logging"]["quiet"] else level}


def has_log_file(cluster: MiniClusterModel) -> bool:
    """Say whether a file has the log of a pod's broker: what the values want on stderr is no log."""
    logging = cluster.spec["logging"]
    return bool(logging["quiet"] or (cluster.flux["logLevel"] is None and not logging["debug"]))


def grace(cluster: MiniClusterModel) -> tuple[int, int, int]:
    """Return the parts of a pod's grace period, in seconds: jobs run on, jobs are ended, the broker is ended."""
    archive = cluster.spec["archive"]
    dump = int(archive["dumpSeconds"]) if archive["path"] else None
    return grace_parts(int(cluster.spec["pod"]["terminationGracePeriodSeconds"]), dump)


def grace_parts(seconds: int, dump: int | None) -> tuple[int, int, int]:
    """Return the parts of a grace period; ``dump`` is the time for that of an archive, None without one."""
    # the last two numbers are for too short a period: the dump of an archive then gets half of it
    ends, least, part = (END_SECONDS, 2, 2) if dump is None else (dump, 4, 3)
    leave = max(seconds - KILL_SECONDS - ends, seconds // least)
    kill = min(KILL_SECONDS, (seconds - leave + 1) // part)
    return leave, kill, seconds - leave - kill
