"""A container on the lead only, on real pods."""

from typing import Any

from pod_jobs import QUIET
from real_cluster import IN_PODS, Install

from tools.clients import until
from tools.releases import STEP_SECONDS, FluxRelease, index_of

pytestmark = IN_PODS
#: Serves a text that differs from pod to pod
SERVE = "mkdir /tmp/web; cd /tmp/web; cat /proc/sys/kernel/random/uuid >id; exec flux python -m http.server 8888"
ASK = "from urllib.request import urlopen; print(urlopen('http://mini-web:8888/id', timeout=2).read().decode())"

#: The processes of a container, without those of `kubectl exec`
OWN = "1 $(cat /proc/1/task/1/children)"


def web(**fields: Any) -> dict[str, Any]:
    return {"size": 3, **QUIET, "containers": [{"name": "web", "leadOnly": True, "ports": [8888], **fields}]}


def in_web(cluster: FluxRelease, index: int, text: str) -> list[str]:
    """Return the words that a shell script prints in the container of a pod."""
    return cluster.kubectl("exec", cluster.pod(index), "-c", "web", "--", "sh", "-c", text).split()


def statuses(cluster: FluxRelease) -> dict[int, dict[str, Any]]:
    """Return the status of the container in each pod, by index."""
    return {
        index_of(pod): status
        for pod in cluster.pods()
        for status in pod["status"].get("initContainerStatuses", [])
        if status["name"] == "web"
    }


def asked(cluster: FluxRelease) -> str:
    """Return the answer of the Service to a worker; "" without one."""
    return cluster.flux(1, "python", "-c", ASK).strip()


def test_the_service_of_a_container_on_the_lead_only_reaches_each_next_lead(release: Install) -> None:
    cluster = release(web(command=SERVE), {"runFlux": True})
    cluster.wait_for("0-2")
    first = until(lambda: asked(cluster), STEP_SECONDS)
    assert [first] == in_web(cluster, 0, "cat /tmp/web/id")
    # on a worker there is a shell, and nothing else
    for index in (1, 2):
        assert in_web(cluster, index, f"for pid in {OWN}; do cat /proc/$pid/comm; done") == ["sh"]
        sizes = in_web(cluster, index, f"for pid in {OWN}; do sed -n 's/VmRSS://p' /proc/$pid/status; done")
        print(f"worker {index}: {' '.join(sizes)}")
    lead = cluster.pod(0)
    cluster.evict(lead)
    until(lambda: cluster.pod(0) not in ("", lead), STEP_SECONDS)
    second = until(lambda: (answer := asked(cluster)) != first and answer, STEP_SECONDS)
    assert [second] == in_web(cluster, 0, "cat /tmp/web/id")


def test_a_container_on_the_lead_only_restarts_and_ends_as_a_sidecar(release: Install) -> None:
    """A container that fails is restarted alone; when the work is over, all containers end at once."""
    cluster = release(web(command="exit 3"), {"runFlux": True})
    cluster.wait_for("0-2")
    until(lambda: statuses(cluster)[0]["restartCount"] > 1, STEP_SECONDS)
    assert statuses(cluster)[0]["lastState"]["terminated"]["exitCode"] == 3
    assert [statuses(cluster)[index]["restartCount"] for index in (1, 2)] == [0, 0]
    cluster.flux(0, "shutdown")
    assert "Complete" in cluster.wait_for_end()
    states: list[dict[str, Any]] = []

    def have_ended() -> bool:
        # the pod of a worker may be gone already
        states[:] = [status["state"] for index, status in statuses(cluster).items() if index > 0]
        return all("terminated" in state for state in states)

    until(have_ended)
    assert all(state["terminated"]["exitCode"] == 0 for state in states)
