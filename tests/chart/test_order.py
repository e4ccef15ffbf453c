"""Helm renders templates in the order of their paths: with live Jobs, too, that changes nothing."""

from pathlib import Path
from typing import Any

import pytest
from renderings import live_chart
from support import Helm, by_name, deep, values_text

OPTIONS = ("--is-upgrade", "--kube-version", "1.36.3", "--api-versions", "batch/v1/Job")
VALUES: dict[str, Any] = {
    "size": 2,
    "maxSize": 4,
    "interactive": True,
    "upgrade": {"replace": True},
    "state": {"claimName": "s"},
    "services": [{"name": "web", "image": "a"}],
    "groups": [{"name": "g", "cores": 1}],
    "autoscaling": {"enabled": True},
    "flux": {"curveCertSecret": "c"},
}
SUSPENDED = {"spec": {"suspend": True}}


def turn_round(chart: Path) -> None:
    """Rename folders and files, so that the last path is the first."""
    templates = chart / "templates"
    files = [path for path in templates.glob("*/*") if path.suffix == ".yaml"]
    folders = [path for path in templates.iterdir() if path.is_dir()]
    for paths in (files, folders):
        for number, path in enumerate(sorted(paths, reverse=True)):
            path.rename(path.with_name(f"{number:02}-{path.name}"))


@pytest.mark.parametrize(
    ("asked", "now"),
    [
        ({"deadlineSeconds": 9}, {}),
        ({"maxSize": 8}, {}),
        ({"pod": {"nodeSelector": {"a": "b"}}}, SUSPENDED),
        ({"maxSize": 8}, None),
    ],
    ids=["kept", "replaced", "in place", "gone"],
)
def test_the_order_of_the_templates_changes_nothing(
    helm: Helm, tmp_path: Path, asked: dict[str, Any], now: dict[str, Any] | None
) -> None:
    made = by_name(helm.template(*OPTIONS, values=VALUES))
    live = {f"{kind}/{name}": deep(one, now) for (kind, name), one in made.items() if kind == "Job" and now is not None}
    chart = live_chart(tmp_path / "minicluster", live)
    values = values_text(deep(VALUES, asked))
    first = helm.template(*OPTIONS, values=values, chart=chart)
    turn_round(chart)
    assert by_name(helm.template(*OPTIONS, values=values, chart=chart)) == by_name(first)
