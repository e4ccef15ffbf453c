"""Jobs that may be stopped, and that go back into the queue, for one that waits."""

from pathlib import Path
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from test_putting_back import counts, lines, listed, only_other, row, shared, started  # noqa: F401 - a fixture

from tools.clients import until

AFTER = 2
VALUES: dict[str, Any] = {
    "size": 3,
    "logging": {"quiet": True},
    "flux": {"preemption": {"afterSeconds": AFTER, "minimumRunSeconds": 1}},
}
MARKED = "--setattr=user.minicluster.preemptible"
WHOLE = ("-N1", "--exclusive")


def stopped_for(job: str, copy: str) -> str:
    return f"minicluster: stopped for job {job}, which has waited long (flux.preemption): it runs again as {copy}"


def runs(cluster: Cluster) -> set[str]:
    return {name for name, state, _ in listed(cluster) if state == "RUN"}


def test_one_of_two_jobs_is_stopped_for_one_that_waits(make: Make) -> None:
    cluster = make(VALUES).start().wait_for_ready()
    own = started(cluster, *WHOLE, "--requires=rank:0", "sleep", "600")
    old = started(cluster, *WHOLE, MARKED, "sleep", "600")
    young = started(cluster, *WHOLE, MARKED, "sleep", "600")
    # it would be first
    other = cluster.lead.flux("submit", *WHOLE, MARKED, "sleep", "600").strip().replace("ƒ", "f")
    job = cluster.lead.flux("submit", *WHOLE, "--flags=waitable", "sleep", "600").strip().replace("ƒ", "f")
    until(lambda: job in runs(cluster))
    assert runs(cluster) == {own, old, job}
    state, said = row(cluster, other)
    waits = said.split()[1] if state == "CANCELED" else other  # its copy, with Fluxion 0.34
    copy = only_other(cluster, own, old, young, other, job, waits)
    assert row(cluster, young) == ["CANCELED", stopped_for(job, copy)]
    assert (row(cluster, copy), row(cluster, waits)) == (["SCHED", ""], ["SCHED", ""])
    memo = cluster.lead.flux("jobs", "-n", "-o", "{user.minicluster_stops}", job)
    assert memo == f"{young}\n"
    said = f"minicluster: job {young} is stopped for job {job}, which has waited long: it runs again as {copy}"
    assert said in cluster.lead.log
    # marked jobs wait for each other, and nothing else is stopped
    cluster.lead.flux("cancel", job)
    until(lambda: len(runs(cluster)) == 3)
    assert {young, job, *({other} - {waits})} == {name for name, state, _ in listed(cluster) if state == "CANCELED"}


@pytest.mark.parametrize("requeue", [1, 0])
def test_a_job_is_warned_saves_and_goes_on_later(make: Make, shared: Path, requeue: int) -> None:  # noqa: F811
    cluster = make({**VALUES, "size": 1}).start().wait_for_ready()
    signal = ("--setattr=user.minicluster.signal=USR1@60s", f"--setattr=user.minicluster.requeue={requeue}")
    saves = started(cluster, *WHOLE, MARKED, *signal, "--env=MODE=there", "sh", counts(shared, "USR1"))
    until(lambda: lines(shared))
    job = cluster.lead.flux("submit", *WHOLE, "sh", "-c", f"touch {shared}/end").strip().replace("ƒ", "f")
    until(lambda: row(cluster, job)[0] == "COMPLETED")
    until(lambda: not runs(cluster) and all(state not in ("SCHED", "DEPEND") for _, state, _ in listed(cluster)))
    rows = {name: state for name, state, _ in listed(cluster)}
    again = {only_other(cluster, saves, job): "COMPLETED"} if requeue else {}
    assert rows == {saves: "FAILED", job: "COMPLETED", **again}
    ran = ["goes on", "starts there", "ends"] if requeue else []
    assert [line.partition(" at ")[0] for line in lines(shared)] == ["starts there", "saved", *ran]


def test_a_job_is_tried_again_until_it_ends_well(make: Make, shared: Path) -> None:  # noqa: F811
    cluster = make({"size": 2, "logging": {"quiet": True}}).start().wait_for_ready()
    wish = ("--setattr=user.minicluster.retries=3", "--setattr=user.minicluster.retryOn=29,137")
    script = f"echo x >>{shared}/tries; [ $(wc -l <{shared}/tries) -ge 3 ] || exit 29"
    job = cluster.lead.flux("submit", *wish, "sh", "-c", script).strip().replace("ƒ", "f")
    other = cluster.lead.flux("submit", *wish, "sh", "-c", "exit 1").strip().replace("ƒ", "f")
    until(lambda: "COMPLETED" in [state for _, state, _ in listed(cluster)])
    rows = {name: state for name, state, _ in listed(cluster)}
    assert (rows.pop(job), rows.pop(other)) == ("FAILED", "FAILED")
    assert sorted(rows.values()) == ["COMPLETED", "FAILED"]
    tried = [line for line in cluster.lead.log.splitlines() if "try" in line]
    assert [line.partition(": try")[2][:9] for line in tried] == [" 1 of 3 i", " 2 of 3 i"]
