"""Jobs choose the nodes of a segment by its number, also those that have not joined."""

from pathlib import Path
from typing import Any

from agent_beside import agent_beside
from broker_clusters import Cluster, Make
from broker_pods import NAME

from tools.clients import until

SEGMENTS: dict[str, Any] = {"size": 4, "maxSize": 5, "pod": {"segments": {"size": 2}}, "logging": {"quiet": True}}


def ran_on(cluster: Cluster, *words: str) -> list[str]:
    """Return the indexes of the hosts on which a job runs."""
    names = cluster.lead.flux("run", *words, "sh", "-c", "flux getattr hostname")
    return sorted(name.removeprefix(f"{NAME}-") for name in names.split())


def test_a_job_runs_in_the_segment_that_it_names(make: Make) -> None:
    cluster = make(SEGMENTS, {"cores": 1})
    cluster.start(range(4)).wait_for_ready()
    assert ran_on(cluster, "--requires=segment=1", "-N2") == ["2", "3"]
    assert ran_on(cluster, "--requires=segment=0", "-N1") == ["0"]
    assert ran_on(cluster, "--requires=^segment=0", "-N2") == ["2", "3"]
    assert ran_on(cluster, "--requires=segment=0|segment=1", "-N4") == ["0", "1", "2", "3"]
    # also in an instance that is a job
    inner = "flux run --requires=segment=1 -N2 true; flux jobs -ano '{nodelist}'"
    assert cluster.lead.flux("alloc", "-N4", "sh", "-c", inner).split() == [f"{NAME}-[2-3]"]
    done = cluster.lead.run("/mnt/flux/bin/flux", "submit", "-N3", "--requires=segment=1", "true")
    assert done.returncode == 1
    assert "atisfiable" in done.stderr
    late = cluster.lead.flux("submit", "-N1", "--requires=segment=2", "true").strip()
    cluster.start([4])
    cluster.lead.flux("job", "wait-event", late, "clean")
    assert cluster.lead.flux("jobs", "-no", "{status_abbrev} {nodelist}", late).split() == ["CD", f"{NAME}-4"]


def test_the_agent_grows_to_the_segment_that_a_job_names(make: Make, tmp_path: Path) -> None:
    values = {**SEGMENTS, "size": 1, "autoscaling": {"enabled": True}, "agent": {"periodSeconds": 3600}}
    with agent_beside(make(values, {"cores": 1}), tmp_path / "agent.log") as mc:
        until(lambda: "nothing to do" in mc.log)
        assert mc.ends(mc.submit("-N2", "--requires=segment=1", "true")) == "COMPLETED"
        assert mc.api.sizes == [1, 4]
