"""Versions of chart and post-renderer, and what an upgrade to another version must not change."""

import shutil
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support import ROOT, Helm

from tools.releases import Release

VALUES: dict[str, Any] = {
    "size": 2,
    "maxSize": 4,
    "tasks": 3,
    "containers": [
        {
            "name": "app",
            "image": "ubuntu:noble",
            "runFlux": True,
            "command": "sleep 'inf'\n",
            "environment": {"EMPTY": "", "A": "$HOME 'b'\n \u2028c: d\n"},
            "commands": {"prefix": "time -p", "pre": "true"},
            "resources": {"limits": {"cpu": 2, "memory": "2048Mi"}},
            "volumes": {"scratch": {"path": "/scratch", "emptyDir": True}},
        },
        {"name": "side", "image": "busybox", "command": "sleep inf", "ports": [80]},
    ],
    "services": [{"name": "db", "image": "busybox", "command": "sleep inf"}],
    # the exported text looks like a setting
    "flux": {"environment": {"TEXT": "a\nmc_size=7\n'\"\n"}, "optionFlags": "-o verbose=9"},
    "pod": {"labels": {"team": "a"}, "annotations": {"b/c": "d"}},
}
#: Archives of versions that releases are live of: `git archive` of a commit.
OLDER = sorted((ROOT / "tests" / "cluster" / "older").glob("*.tar.gz"))
#: The files that contain the size.
SIZED = ("settings.sh", "agent.json")


@dataclass(frozen=True)
class Version:
    """A chart with its post-renderer, in a folder with the layout of the repository."""

    root: Path

    @property
    def chart(self) -> Path:
        """The chart."""
        return self.root / "charts" / "minicluster"

    def helm(self, helm: Helm) -> Helm:
        """Return a Helm that has this post-renderer, in PATH and as a plugin."""
        path = f"{self.root / 'bin'}:{helm.environment['PATH']}"
        plugins = {"HELM_PLUGINS": str(self.root)} if helm.major == 4 else {}
        return helm.with_env(PATH=path, **plugins)

    def install(self) -> "Version":
        """Make the command `minicluster` of this version."""
        command = self.root / "bin" / "minicluster"
        command.parent.mkdir()
        python = f"exec '{sys.executable}' -m minicluster"
        command.write_text(f"#!/bin/sh\nPYTHONPATH='{self.root / 'plugin'}' {python} \"$@\"\n")
        command.chmod(0o755)
        return self


def older(archive: Path, root: Path) -> Version:
    """Unpack a version that releases are live of."""
    with tarfile.open(archive) as file:
        # an argument of extractall, which Python has since 3.11.4
        file.extraction_filter = getattr(tarfile, "data_filter", None)
        file.extractall(root)
    return Version(root).install()


@dataclass(frozen=True)
class State:
    """The parts of a live cluster that an upgrade must keep."""

    job: str
    spec: dict[str, Any]
    immutable: str
    pods: dict[int, str]
    services: list[str]
    certificate: str
    files: dict[str, str]
    programs: dict[str, dict[str, str]]

    @staticmethod
    def of(release: Release, size: int) -> "State":
        """Return the state once ``size`` pods run."""
        pods = release.running(size)
        release.cluster.wait("the pod of the services", lambda: len(services_pods(release)) == 1)
        job = release.get("job")
        mutable = ("completions", "parallelism", "activeDeadlineSeconds")
        return State(
            job=job["metadata"]["uid"],
            spec={key: value for key, value in job["spec"].items() if key not in mutable},
            immutable=job["metadata"]["annotations"]["minicluster/immutable"],
            pods=pods,
            services=services_pods(release),
            certificate=release.certificate(),
            files=release.get("configmap", "mc-config")["data"],
            programs=programs(release),
        )

    def stays(self, release: Release, size: int) -> dict[str, str]:
        """Check that only the size has changed; return the files that contain it."""
        after = State.of(release, size)
        both = min(size, len(self.pods))
        assert {i: after.pods[i] for i in range(both)} == {i: self.pods[i] for i in range(both)}
        for name in ("job", "spec", "immutable", "services", "certificate", "programs"):
            assert getattr(after, name) == getattr(self, name), name
        assert {f: t for f, t in after.files.items() if f not in SIZED} == {
            f: t for f, t in self.files.items() if f not in (*SIZED, "quorum.sh")
        } | {"quorum.sh": after.files["quorum.sh"]}
        return {file: after.files[file] for file in SIZED}


def programs(release: Release) -> dict[str, dict[str, str]]:
    """Return the files of the ConfigMaps that MiniClusters share, by name."""
    found = {one["metadata"]["name"]: one["data"] for one in release.items("configmaps")}
    return {name: found[name] for name in found if "-programs" in name and not name.endswith("-slurm")}


def mounted(release: Release, job: str) -> list[str]:
    """Return the names of the ConfigMaps that the pods of a Job mount."""
    volumes = release.get("job", job)["spec"]["template"]["spec"]["volumes"]
    (volume,) = (one for one in volumes if one["name"] == "minicluster-config")
    sources = volume["projected"]["sources"] if "projected" in volume else [volume]
    return [one["configMap"]["name"] for one in sources]


def umbrella(folder: Path, chart: Path, count: int) -> Path:
    """Make a chart with MiniClusters mc0, mc1 and so on, each an alias of ours."""
    shutil.copytree(chart, folder / "charts" / "minicluster")
    aliases = [f"mc{number}" for number in range(count)]
    needs = [{"name": "minicluster", "version": ">=0", "alias": alias} for alias in aliases]
    about = {"apiVersion": "v2", "name": "umbrella", "version": "1.0.0", "dependencies": needs}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(about))
    (folder / "values.yaml").write_text(yaml.safe_dump({alias: {"nameOverride": alias} for alias in aliases}))
    return folder


def services_pods(release: Release) -> list[str]:
    selector = "app.kubernetes.io/component=services"
    found = release.cluster.get("pods", "--namespace", release.namespace, f"--selector={selector}")["items"]
    return [pod["metadata"]["uid"] for pod in found]


def use(release: Release, version: Version, connected: Helm) -> None:
    release.chart = version.chart
    release.helm = connected if version.root == ROOT else version.helm(connected)


def sized(text: str, old: int, new: int) -> str:
    """Return settings of the older version with another size."""
    return (
        text.replace(f"mc_size={old}\n", f"mc_size={new}\n", 1)
        .replace(f"-o-Sbroker.quorum={old} ", "" if new == VALUES["maxSize"] else f"-o-Sbroker.quorum={new} ")
        .replace(f"-N {old} -n 3", f"-N {new} -n 3" if new <= 3 else "-n 3")
    )
