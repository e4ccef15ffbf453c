"""benchmarks/README.md and its plots show benchmarks/results, and the benchmarks compute their figures correctly."""

import json
import re
from collections import Counter

import pytest

from benchmarks import brokers, jobs, names, page, results, sizes, table

TABLES = set(re.findall(r"<!-- table (\w+) -->", page.PAGE.read_text()))


def test_the_tables_of_the_performance_page_are_current():
    text = page.PAGE.read_text()
    assert page.written(text) == text, "run python -m benchmarks.page"


def test_each_benchmark_result_is_on_the_performance_page():
    assert {file.stem for file in results.FOLDER.glob("*.json")} == TABLES == set(page.TABLES)


@pytest.mark.parametrize("file", page.PLOTS)
def test_each_plot_is_drawn_from_the_current_results(file):
    drawn = (page.IMAGES / file).read_text()
    assert results.digest(page.PLOTS[file]) in drawn, "run python -m benchmarks.page"
    assert f"images/{file}" in page.PAGE.read_text()


def test_the_table_of_start_times_has_ratios():
    rows = [
        {"pods": 4, "view_mb": 89, "way": "bare", "runs": 6, "median_seconds": 2.0},
        {"pods": 4, "view_mb": 89, "way": "image", "runs": 6, "median_seconds": 2.5},
        {"pods": 4, "view_mb": 554, "way": "bare", "runs": 4, "median_seconds": 2.0},
    ]
    lines = page.start(rows).splitlines()
    assert [line.split(" | ")[2:6] for line in lines[2:]] == [
        ["6", "-", "2.00 (1.00)", "2.50 (1.25)"],
        ["4", "-", "2.00 (1.00)", "-"],
    ]


def test_a_table_column_can_be_computed_from_others():
    made = table.columns(the_hosts="hosts", each="bytes / hosts", ten="bytes * 10")([{"hosts": 4, "bytes": 1000}])
    assert made == "| the hosts | each | ten |\n|---|---|---|\n| 4 | 250 | 10,000 |\n"


def test_the_performance_page_is_filled_between_its_marks():
    text = "a\n<!-- table render -->\nold\n<!-- end -->\nb\n"
    found = {"date": "2026-11-22", "where": "here", "rows": [{"what": "one", "seconds": 0.5}]}
    filled = page.written(text, lambda _: found)
    assert filled == (
        "a\n<!-- table render -->\n\n| what | seconds |\n|---|---|\n| one | 0.50 |\n\n"
        "Measured on 2026-11-22: here.\n\n<!-- end -->\nb\n"
    )
    assert page.written(filled, lambda _: found) == filled


def test_benchmark_results_are_read_as_written(tmp_path):
    rows = [{"hosts": 4, "way": "ä"}, {"hosts": 5, "way": None}]
    results.save(tmp_path / "one.json", "a “machine”", rows)
    found = results.load("one", tmp_path)
    assert (found["where"], found["rows"]) == ("a “machine”", rows)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    before = results.digest(["one"], tmp_path)
    results.save(tmp_path / "one.json", "another", rows)
    assert results.digest(["one"], tmp_path) != before


@pytest.mark.parametrize("rows", [[], [{"a": 1}, {"b": 1}]], ids=["none", "other keys"])
def test_benchmark_results_without_rows_or_with_unequal_keys_are_refused(tmp_path, rows):
    (tmp_path / "one.json").write_text(json.dumps({"rows": rows}))
    with pytest.raises(ValueError, match=r"one\.json: the rows"):
        results.load("one", tmp_path)


def test_benchmark_counts_api_requests_by_verb_and_resource():
    metrics = """# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="pods",subresource="",verb="POST"} 3
apiserver_request_total{code="409",resource="pods",subresource="",verb="POST"} 1
apiserver_request_total{code="201",resource="pods",subresource="binding",verb="POST"} 1e+03
apiserver_request_total{code="0",resource="pods",subresource="",verb="WATCH"} 9
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 9
apiserver_request_total{code="200",resource="",subresource="/readyz",verb="GET"} 9
other{verb="POST"} 9
"""
    assert jobs.requests(metrics) == Counter({"POST pods": 4, "POST pods/binding": 1000})


def test_benchmark_finds_the_latest_kubernetes_timestamp():
    stamps = ["2026-11-22T02:00:09Z", "2026-11-22T02:01:00Z", "2026-11-22T02:00:30Z"]
    assert jobs.last(stamps) == jobs.last(["2026-11-22T02:00:00Z"]) + 60


def test_benchmark_counts_the_bytes_of_rendered_objects():
    toml = '[[bootstrap.hosts]]\nhost = "mc-[0-9]"\n'
    manifests = "\n---\n".join(
        json.dumps(document)
        for document in (
            {"kind": "ConfigMap", "data": {"a.sh": "123"}},
            {"kind": "ConfigMap", "data": {"broker.toml": toml, "é": "12"}},
            {"kind": "Secret", "stringData": {"curve.cert": "1234"}},
            {"kind": "Job", "a": 1},
            {"kind": "Service"},
        )
    )
    assert sizes.sizes(manifests) == {
        "configmap_bytes": len("broker.toml") + len(toml) + 3 + 7,
        "secret_bytes": 14,
        "broker_toml_bytes": len(toml),
        "hostlist_bytes": 8,
        "job_bytes": len('{"kind": "Job", "a": 1}'),
    }


@pytest.mark.parametrize(
    ("size", "expected"), [(3, [2]), (8, [2, 16]), (17, [2, 16]), (18, [2, 16, 32]), (5000, [2, 16, 32, 256])], ids=str
)
def test_benchmark_tries_fanouts_that_make_the_same_tree_once(size, expected):
    assert brokers.fanouts(size) == expected


def test_the_dns_stand_in_answers_for_known_and_unknown_names():
    question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x02bc\x00"
    a, aaaa = question + b"\x00\x01\x00\x01", question + b"\x00\x1c\x00\x01"
    head = b"\x12\x34\x81\x80\x00\x01\x00%c\x00\x00\x00\x00"
    record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x7f\x00\x00\x01"
    assert names.answer(a + b"additional", known=True) == head % 1 + a[12:] + record
    assert names.answer(aaaa, known=True) == head % 0 + aaaa[12:]
    assert names.answer(a, known=False) == (head % 0).replace(b"\x81\x80", b"\x81\x83") + a[12:]
