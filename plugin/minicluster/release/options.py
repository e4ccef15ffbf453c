"""A release that is asked for in words, such as `--image` and `--nodes`, on top of a user's values."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from minicluster import settings
from minicluster.documents import value_at, yamlio
from minicluster.errors import ToolError
from minicluster.kube.port import KubePort
from minicluster.release import helm
from minicluster.render.model import may_run_flux
from minicluster.render.stream import parse, split

#: What Helm says of a name that a release has, also one that another client installs at this moment
TAKEN = re.compile("cannot re-?use a name|release: already exists")
#: A chart without values of its own, which prints those that it gets
BARE_CHART = Path(__file__).parent / "bare_chart"


@dataclass(frozen=True)
class ReleaseOptions:
    """What is asked; None and "" leave a value as the chart or the user's values have it."""

    name: str
    image: str = ""
    nodes: int | None = None
    cpu: str = ""
    memory: str = ""
    gpus: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[str] = ()  #: values files, which override ``values``
    sets: Sequence[str] = ()  #: KEY=VALUE, as Helm takes it; they override everything else
    chart: str = ""  #: another chart than the package's

    @property
    def given(self) -> list[str]:
        """Helm's options for the user's files and what is set."""
        return [*(f"--values={file}" for file in self.files), *(f"--set={text}" for text in self.sets)]


def of_container(index: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a container, by their paths in the values of the release, without those that are empty."""
    return {f"containers[{index}].{path}": value for path, value in values.items() if value}


def node_values(asked: ReleaseOptions) -> dict[str, Any]:
    """Return what the runner is on each node, by its paths in the container."""
    return {
        "image": asked.image,
        "resources.limits.cpu": asked.cpu,
        "resources.requests.cpu": asked.cpu,
        "resources.limits.memory": asked.memory,
        "resources.requests.memory": asked.memory,
        # Kubernetes takes the limit of an extended resource as its request
        r"resources.limits.nvidia\.com/gpu": "" if asked.gpus is None else str(asked.gpus),
    }


def set_words(values: Mapping[str, Any]) -> list[str]:
    """Return the options by which Helm merges values by their paths, also into a list of the user's."""
    return [f"--set-json={path}={json.dumps(value, ensure_ascii=False)}" for path, value in values.items()]


class Runner(NamedTuple):
    """What runs Flux, as far as the user's values have it."""

    cluster: str  #: name of the MiniCluster
    number: int  #: of the container
    container: Mapping[str, Any]  #: empty where the values have none
    is_quiet: bool = False  #: whether the log is what the work prints alone
    usual: Mapping[str, Any] = {}  #: what settings give to values that are not set, by their paths


def find_runner(asked: ReleaseOptions, values: Mapping[str, Any]) -> Runner:
    """Return what runs Flux; ``values`` are ours, by their paths. Helm reads the user's. Raises ToolError."""
    spec = read_values(asked, ["--values", "-", *asked.given, *set_words(values)]) if asked.given else asked.values
    given = spec.get("containers")
    containers = [one if isinstance(one, dict) else {} for one in given] if isinstance(given, list) else []
    # where all say that they are not, the chart refuses
    index = next(iter(may_run_flux(containers)), 0)
    container = containers[index] if containers else {}
    usual = settings.values() | of_container(index, {"image": "" if container.get("image") else settings.text("image")})
    return Runner(
        str(spec.get("nameOverride") or asked.name),
        index,
        container,
        bool(value_at(spec, "logging", "quiet")),
        {} if asked.chart else {path: value for path, value in usual.items() if not value_at(spec, *path.split("."))},
    )


def read_values(asked: ReleaseOptions, words: Sequence[str]) -> dict[str, Any]:
    """Return what Helm's options for values mean; `--values -` is what is asked for. Raises ToolError."""
    release = helm.OfflineRelease(asked.name, "default", words, chart=str(BARE_CHART))
    return dict(yamlio.load(helm.template(release, helm.values_text(asked.values) if asked.values else "")))


def document(rendered: bytes) -> dict[str, Any]:
    """Return the hand-over document in what Helm renders."""
    return next(filter(None, map(parse, split(rendered))))


def words_of_install(asked: ReleaseOptions, values: Iterable[str], *options: str) -> list[str]:
    """Return the words by which Helm installs a release; ``values`` are its options for them."""
    return ["install", asked.name, asked.chart or str(helm.CHART), *values, *options, "--post-renderer", "minicluster"]


def run_install(kubernetes: KubePort, words: Sequence[str], values: Mapping[str, Any] | None = None) -> None:
    """Install a release, with the values of `--values -`. Raises ToolError, after which a part of it may be there."""
    try:
        kubernetes.helm(*words, stdin="" if values is None else helm.values_text(values))
    except ToolError as error:
        name = words[1]
        if TAKEN.search(str(error)):
            raise ToolError(
                f"there is a release {name} in {kubernetes} already: take another name, or remove it by "
                f"`minicluster delete {name}`"
            ) from None
        raise ToolError(helm.explain(error)) from None
