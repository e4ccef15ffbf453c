"""`global.imageRegistry`: all images of a release come from a mirror."""

import re

import pytest
from renderings import at
from support import CHART, Helm

DIGEST = "sha256:" + "0" * 64
VALUES = f"""
global: {{imageRegistry: "reg.example:5000/m/"}}
size: 2
containers:
  - {{runFlux: true, volumes: {{model: {{path: /m, image: ghcr.io/org/model:1}}}}}}
  - {{name: side, image: docker.io/busybox@{DIGEST}, command: sleep 1}}
  - {{name: own, image: reg.example:5000/m/own:2, command: sleep 1}}
groups:
  - name: gpu
    image: quay.io/x/y:1
    cores: 1
    pod: {{template: {{spec: {{initContainers: [{{name: i, image: localhost/i}}]}}}}}}
services: [{{name: web, image: nginx}}]
autoscaling: {{enabled: true, handle: true}}
schedules: [{{name: s, cron: "0 0 * * *", command: [a]}}]
upgrade: {{replace: true}}
flux: {{container: {{mode: image}}, bursting: {{follow: {{bursts: [b], image: org/follow:1}}}}}}
pod:
  template:
    spec: {{volumes: [{{name: a, image: {{reference: docker.io/o/a:1}}}}, {{name: b, emptyDir: {{}}}}]}}
"""


def images(text: str) -> set[str]:
    """Return the images of a rendering, those of containers and of volumes."""
    return set(re.findall(r'^[- ]*(?:image|reference): "?([^"\s]+)"?$', text, re.MULTILINE))


def test_all_images_come_from_the_mirror(helm: Helm) -> None:
    expected = {
        "library/ubuntu:noble",
        "org/model:1",
        f"library/busybox@{DIGEST}",
        "own:2",
        "x/y:1",
        "i",
        "library/nginx",
        "org/follow:1",
        "o/a:1",
        "converged-computing/flux-view-ubuntu:tag-noble",
    }
    found = images(helm.template("--kube-version", "1.36.0", "--api-versions", "batch/v1/Job", values=VALUES))
    assert found == {f"reg.example:5000/m/{image}" for image in expected}


@pytest.mark.any_helm
def test_a_release_without_a_mirror_has_the_images_of_its_values(helm4: Helm) -> None:
    for unset in ("", None):
        assert images(helm4.template(values=at("global.imageRegistry", unset))) == {
            "ubuntu:noble",
            "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble",
        }


@pytest.mark.any_helm
@pytest.mark.parametrize("registry", ["https://reg.example", "reg.example/a b", "/m"])
def test_what_is_no_registry_is_refused_by_name(helm4: Helm, registry: str) -> None:
    text = helm4.fails("template", "x", CHART, "--set-string", f"global.imageRegistry={registry}")
    assert f'global.imageRegistry is "{registry}": name a host without https://, such as reg' in text
