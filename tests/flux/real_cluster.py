"""Where the pods' tests run, and the types of their fixtures (conftest.py)."""

import os
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from support import ROOT

from tools.releases import FluxRelease
from tools.testbed import KUBECONFIG

IN_PODS = pytest.mark.skipif(KUBECONFIG not in os.environ, reason=f"{KUBECONFIG} names no cluster to run pods on")
#: For tests that mount a folder of the Kubernetes node.
NODE_FOLDER = pytest.mark.without("security", why="Pod Security refuses hostPath")
#: Installs a release: values, fields of the runner, then mode=, helm=, labels= of the namespace, options= of Helm.
Install = Callable[..., FluxRelease]
#: Skips the test where the image of its module lacks a tool.
Need = Callable[[str], None]


def example(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values and the runner of a file of values-examples, without their images: the tests choose those."""
    values = yaml.safe_load((ROOT / f"values-examples/{name}.yaml").read_text())
    (runner,) = values.pop("containers")
    del runner["image"]
    values.get("flux", {}).get("container", {}).pop("image", None)
    return values, runner


def need_image(variable: str, what: str) -> tuple[str, list[pytest.MarkDecorator]]:
    """Return the image that a variable names, and the marks of a module whose tests need it."""
    image = os.environ.get(variable, "")
    return image, [IN_PODS, pytest.mark.skipif(not image, reason=f"{variable} names no image with {what}")]
