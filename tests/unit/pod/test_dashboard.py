"""The dashboard shows each metric that exists, of the pods that its variables choose."""

import json
import re
from collections.abc import Iterator
from typing import Any

import metrics
import state
from support import CHART

DASHBOARD: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text(encoding="utf-8"))
#: A metric in a query, with its selector.
METRIC = re.compile(r"(minicluster_\w+)(\{[^}]*\})?")


def queries() -> Iterator[str]:
    """Yield the queries of the panels."""
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def served() -> dict[str, set[str]]:
    """Return the labels of each metric that a cluster with an autoscaler serves."""
    nodes = state.Nodes({0: (4, 1)}, {0: (2, 1)}, frozenset({0}), {})
    text = metrics.text([metrics.GroupFigures("", 1, 2, nodes, {"queue": 1, "min": 1})], {}, 0.0)
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(minicluster_\w+)(\S*) ", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found


def test_the_dashboard_shows_exactly_the_metrics_that_exist() -> None:
    shown = {name for query in queries() for name, _ in METRIC.findall(query)}
    assert shown == served().keys()


def test_the_dashboard_groups_by_labels_that_exist() -> None:
    labels = served()
    for query in queries():
        (name, _), by = METRIC.findall(query)[0], re.findall(r"by \((\w+)\)", query)
        assert set(by) == labels[name], query


def test_each_query_of_the_dashboard_selects_the_chosen_pods() -> None:
    chosen = '{namespace=~"$namespace", pod=~"$pod"}'
    assert {selector for query in queries() for _, selector in METRIC.findall(query)} == {chosen}


def test_each_panel_and_variable_of_the_dashboard_asks_the_chosen_data_source() -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    variables = [v for v in DASHBOARD["templating"]["list"] if v["type"] == "query"]
    targets = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert all(part["datasource"] == source for part in [*DASHBOARD["panels"], *targets, *variables])
    assert [v["name"] for v in DASHBOARD["templating"]["list"]] == ["datasource", "namespace", "pod"]


def test_panels_of_the_dashboard_have_unique_ids_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
