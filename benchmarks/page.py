"""Writes the tables of benchmarks/README.md, and draws its plots, from benchmarks/results.

    python -m benchmarks.page

A table of the page is between `<!-- table NAME -->` and `<!-- end -->`: NAME is a file of benchmarks/results and a key
of TABLES. The plots need matplotlib (`pip install '.[benchmarks]'`).
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.results import Row
from benchmarks.table import Cells, columns, number, table

PAGE = Path(__file__).resolve().with_name("README.md")
IMAGES = PAGE.with_name("images")
#: The plots, and the results that each shows.
PLOTS = {"start.svg": ("start",), "size.svg": ("hosts", "jobs"), "beside.svg": ("small_jobs", "pending")}
MARKED = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
#: The ways to start, by their names in start.json: bare first, with which the others are compared.
WAYS = {
    "echo": "bare pods, `echo`",
    "bare": "bare pods, Flux",
    "image": "chart, `image`",
    "copy": "chart, `copy`",
    "helm": "`helm install`, `image`",
    "operator": "flux-operator",
}


def start(rows: Sequence[Row]) -> str:
    """Return the seconds of each way by pods and view, and their ratio to those of bare pods with Flux."""
    groups = list(dict.fromkeys((row["pods"], row["view_mb"], row["runs"]) for row in rows))
    lines: list[Cells] = []
    for group in groups:
        seconds = {r["way"]: r["median_seconds"] for r in rows if (r["pods"], r["view_mb"], r["runs"]) == group}
        base = seconds["bare"]
        cells = [f"{number(s)} ({s / base:.2f})" if (s := seconds.get(way)) else None for way in WAYS]
        lines.append([*group, *cells])
    return table(["pods", "view, MB", "runs", *WAYS.values()], lines)


LOSSES = columns(
    killed="what",
    times="kills",
    median_s="median_seconds",
    p95_s="p95_seconds",
    longest_s="longest_seconds",
    jobs_in_the_queue="jobs",
    lost="lost",
)

TABLES: dict[str, Callable[[Sequence[Row]], str]] = {
    "start": start,
    "copies": columns(pods="pods", way="way", median_s="median_seconds", times_bare_pods="times_bare"),
    "versions": columns(
        Kubernetes="kubernetes", way="way", runs="runs", median_s="median_seconds", times_bare_pods="times_bare"
    ),
    "first": columns(
        way="way",
        runs="runs",
        s_to_the_first_line="first_seconds",
        times="times_first",
        s_from_the_last_line_to_the_prompt="prompt_seconds",
        CPU_s="cpu_seconds",
    ),
    "inside": columns(
        way="way",
        runs="runs",
        s_to_the_first_line="first_seconds",
        times="times_first",
        s_from_the_last_line_to_the_prompt="prompt_seconds",
        CPU_s="cpu_seconds",
    ),
    "observing": columns(
        watched_by="watcher",
        percent_of_a_core="beside_part * 100",
        MiB="beside_mib",
        percent_of_a_core_of_the_broker="broker_part * 100",
        s_until_an_end_is_told="told_seconds",
        p95_s="p95_seconds",
    ),
    "many": columns(
        MiniClusters="clusters",
        pods="pods",
        s_until_installed="installed_seconds",
        s_until_all_run="ready_seconds",
        CPU_s_of_Helm_each="client_seconds",
        of_API_server_and_etcd_each="api_seconds",
        of_controllers_and_scheduler_each="controllers_seconds",
        s_of_list="list_seconds",
        s_of_status="status_seconds",
        s_of_scale="scale_seconds",
        s_until_removed="removed_seconds",
    ),
    "small_jobs": columns(nodes="nodes", way="way", jobs="jobs", seconds="seconds", jobs_a_second="jobs_per_second"),
    "gangs": columns(way="way", gangs="gangs", ended="done", s="last_seconds", times_the_work="times_least"),
    "audited": columns(
        way="way",
        gangs="gangs",
        runs="rounds",
        s_until_all_are_created="created_seconds",
        s_until_all_are_bound="bound_seconds",
        ms_from_a_gang_to_its_last_binding="wait_seconds * 1000",
        ms_between_its_bindings="apart_seconds * 1000",
        changes_a_gang="requests",
        CPU_s_a_gang="cpu_seconds",
    ),
    "pending": columns(
        way="way",
        jobs="jobs",
        CPU_ms_of_a_new_job="ms_per_job",
        KB_stored_of_each="bytes_per_job * 0.001",
    ),
    "large_growth": columns(
        nodes="nodes",
        s_until_the_size_changes="decided_seconds",
        s_until_all_pods_run="pods_seconds",
        s_until_the_job_starts="started_seconds",
        CPU_s_of_the_agent="agent_cpu_seconds",
        MiB_of_the_agent="agent_mib",
        CPU_s_of_the_lead="lead_cpu_seconds",
        MiB_of_the_lead="lead_mib",
        s_until_the_size_is_1_again="shrunk_seconds",
        s_until_the_pods_are_gone="gone_seconds",
    ),
    "node_delays": columns(
        nodes="nodes",
        runs="rounds",
        s_until_the_size_changes="decided_seconds",
        s_until_the_last_node="came_seconds",
        s_until_the_job_starts="started_seconds",
        own_part_s="own_seconds",
        s_until_the_size_is_1_again="shrunk_seconds",
        s_until_the_last_node_is_gone="gone_seconds",
        own_part_then_s="own_gone_seconds",
    ),
    "hookup": columns(
        way="way",
        what="what",
        runs="rounds",
        **{f"s_of_{ranks}_ranks": f"ranks_{ranks}_seconds" for ranks in (2, 4, 8, 16, 32, 64)},
        ms_a_rank="ms_per_rank",
    ),
    "operators": columns(
        pods="pods",
        way="way",
        runs="rounds",
        work_s="work_seconds",
        launcher_s="launcher_seconds",
        s_until_the_lead_has_ended="ended_seconds",
        s_until_all_is_gone="life_seconds",
    ),
    "growth": columns(way="way", median_s="median_seconds", times_bare_pods="times_bare"),
    "render": columns(what="what", seconds="seconds"),
    "sizes": columns(
        hosts="hosts",
        ConfigMaps_bytes="configmap_bytes",
        Secret_bytes="secret_bytes",  # noqa: S106
        hostlist_bytes="hostlist_bytes",
        Job_bytes="job_bytes",
        CPU_s_of_minicluster="render_cpu_seconds",
    ),
    "hosts": columns(
        hosts="hosts",
        cores_each="cores",
        scheduler="scheduler",
        memory_of_rank_0_MiB="lead_mib",
        CPU_s_of_rank_0_until_the_quorum="quorum_cpu_seconds",
        CPU_s_of_the_first_job="job_cpu_seconds",
        R_bytes="R_bytes",
    ),
    "tree": columns(
        brokers="brokers",
        fanout="fanout",
        CPU_s_each_until_the_quorum="quorum_cpu_seconds / brokers",
        CPU_s_of_rank_0="lead_cpu_seconds",
        memory_of_rank_0_MiB="lead_mib",
        memory_of_a_leaf_MiB="leaf_mib",
        sockets_of_rank_0="lead_sockets",
        CPU_s_each_of_a_job_over_all="job_cpu_seconds / brokers",
    ),
    "jobs": columns(
        pods="pods",
        requests_a_second="qps",
        created_s="created_seconds",
        bound_s="bound_seconds",
        requests_a_pod="requests / pods",
        EndpointSlices="slices",
        their_writes="slice_writes",
    ),
    "losses": LOSSES,
    "containers": LOSSES,
    "history": columns(
        jobs="jobs",
        jobs_a_second="a_second",
        CPU_ms_of_a_job="cpu_ms",
        memory_of_the_broker_MiB="broker_mib",
        of_its_programs_MiB="programs_mib",
        of_the_agent_MiB="agent_mib",
        disk_MiB="disk_mib",
        s_of_flux_jobs="flux_jobs_seconds",
        s_of_minicluster_jobs="jobs_seconds",
        s_of_minicluster_status="status_seconds",
    ),
    "throughput": columns(
        way="way",
        cluster="cluster",
        jobs_a_second="a_second",
        times_bare="times_bare",
        times_bare_with_the_queue_kept="times_kept",
    ),
    "job_usage": columns(job="what", MiB="memory_mib", time_MiB="time_mib", CPU_s="cpu_seconds", time_s="time_seconds"),
    "names": columns(a_waiting_broker="state", queries_a_second="queries_a_second"),
    "idle": columns(container="what", CPU_s_an_hour="cpu * 3600", memory_MiB="mib", processes="processes"),
}


def written(text: str, load: Callable[[str], dict[str, Any]] = results.load) -> str:
    """Return a page with its tables made from the results. Raises KeyError for a table that is not in TABLES."""

    def fill(match: re.Match[str]) -> str:
        found = load(match[2])
        when = f"\nMeasured on {found['date']}: {found['where']}.\n"
        return f"{match[1]}\n{TABLES[match[2]](found['rows'])}{when}\n{match[3]}"

    return MARKED.sub(fill, text)


def main() -> None:
    """Write the page and draw its plots."""
    from benchmarks import plots  # noqa: PLC0415 # the tables need no matplotlib

    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for file, names in PLOTS.items():
        rows = {name: results.load(name)["rows"] for name in names}
        plots.draw(IMAGES / file, rows, results.digest(names))


if __name__ == "__main__":
    main()
