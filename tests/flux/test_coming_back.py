"""A broker of the lead that dies comes back in its pod: with its queue, and soon with its workers."""

import os
import signal
import time
from functools import partial
from pathlib import Path

from broker_clusters import Cluster, Make
from broker_pods import Pod

from tools.clients import until
from tools.releases import MOUNT

QUIET = {"size": 3, "logging": {"quiet": True}}
AGAIN = "minicluster: the broker ended with exit code 137 and starts again in this pod\n"
#: What the lead says if it was killed just when Flux gave a job its nodes, here one of `runs_jobs`
REPAIRED = "minicluster: the scheduler stopped after the last lead was killed: the scheduler starts again\n"
#: A task that runs as long as its job, whatever asks it to end
STAYS = "trap '' TERM HUP; touch /tmp/stays; while :; do sleep 1; done"


def runs_jobs(cluster: Cluster, nodes: int = 3) -> bool:
    """Say whether a new job runs on all nodes, before those that wait."""
    words = ("run", "--urgency=31", f"-N{nodes}", "true")
    return cluster.lead.run(f"{MOUNT}/bin/flux", *words).returncode == 0


def lose_lead(cluster: Cluster) -> float:
    """Kill the lead's broker; return the seconds until jobs run on all nodes."""
    cluster.lead.kill_broker()
    begin = time.monotonic()
    until(lambda: runs_jobs(cluster), 60)
    print(f"jobs run on all nodes {time.monotonic() - begin:.1f} s after the kill")
    return time.monotonic() - begin


def queue(cluster: Cluster) -> list[str]:
    """Return each job's id and state, those of `runs_jobs` left out."""
    rows = cluster.lead.flux("jobs", "-a", "-n", "-o", "{id} {name} {status_abbrev}").splitlines()
    return sorted(row for row in rows if " true " not in row)


def test_a_lead_that_dies_again_and_again_loses_no_job(make: Make) -> None:
    cluster = make({**QUIET, "state": {"claimName": "shared"}}).start().wait_for_ready()
    held = [cluster.lead.flux("submit", "--urgency=0", "echo", str(each)).strip() for each in range(5)]
    before = queue(cluster)
    assert len(before) == 5
    for _ in range(3):
        lose_lead(cluster)
        assert queue(cluster) == before
    for job in held:
        cluster.lead.flux("job", "urgency", job, "16")
    assert [cluster.lead.flux("job", "attach", job) for job in held] == [f"{each}\n" for each in range(5)]
    cluster.lead.shut_down("--quiet")
    assert cluster.wait() == [0, 0, 0]
    assert ours(cluster.lead.log).replace(REPAIRED, "") == AGAIN * 3


def ours(log: str) -> str:
    """Return the lines of a log that are not Flux's."""
    return "".join(line for line in log.splitlines(keepends=True) if line.startswith("minicluster: "))


def test_an_idle_lead_that_keeps_no_state_has_its_queue_after_its_broker_died(make: Make) -> None:
    cluster = make(QUIET).start().wait_for_ready()
    cluster.lead.flux("submit", "--urgency=0", "echo")
    before = queue(cluster)
    lose_lead(cluster)
    assert len(before) == 1
    assert queue(cluster) == before


def test_no_task_of_a_dead_lead_runs_beside_those_of_the_next(make: Make) -> None:
    cluster = make(QUIET).start().wait_for_ready()
    job = cluster.lead.flux("submit", "-N3", "-n3", "sh", "-c", STAYS).strip()
    until(lambda: all(has_task(pod) and pod.run("test", "-e", "/tmp/stays").returncode == 0 for pod in pods(cluster)))
    lose_lead(cluster)
    assert not [pod.index for pod in pods(cluster) if has_task(pod)]
    assert cluster.lead.flux("jobs", "-n", "-o", "{status_abbrev}", job).strip() == "F"


def test_a_job_that_may_run_again_does_so_after_the_death_of_its_lead(make: Make) -> None:
    cluster = make(QUIET).start().wait_for_ready()
    job = cluster.lead.flux("submit", "--setattr=user.minicluster.requeue=1", "sleep", "600").strip()

    def runs() -> bool:
        words = ("jobs", "-n", "-o", "{status_abbrev}", job)
        return cluster.lead.run(f"{MOUNT}/bin/flux", *words).stdout.strip() == "R"

    until(runs)
    cluster.lead.kill_broker()
    until(lambda: AGAIN in cluster.lead.log, 60)
    again = f"minicluster: job {job.replace('ƒ', 'f')} lost a node: it runs again as "
    # one whose start was not saved waits and runs as before
    until(lambda: again in cluster.lead.log or runs(), 60)


def test_a_job_of_a_killed_lead_runs_again_although_the_next_lead_is_killed_too(make: Make) -> None:
    cluster = make({**QUIET, "state": {"claimName": "shared"}}).start().wait_for_ready()
    job = cluster.lead.flux("submit", "--setattr=user.minicluster.requeue=1", "sleep", "600").strip()

    def state() -> str:
        words = ("jobs", "-n", "-o", "{status_abbrev}", job)
        return cluster.lead.run(f"{MOUNT}/bin/flux", *words).stdout.strip()

    until(lambda: state() == "R")
    cluster.lead.kill_broker()
    # before the programs of the next lead have looked
    until(lambda: state() == "F", 60, pause=0.02)
    cluster.lead.kill_broker()
    again = f"minicluster: job {job.replace('ƒ', 'f')} lost a node: it runs again as "
    until(lambda: again in cluster.lead.log, 60)


def pods(cluster: Cluster) -> list[Pod]:
    return list(cluster.pods.values())


def has_task(pod: Pod) -> bool:
    """Say whether a task with our text runs in a pod."""
    return "/tmp/stays" in pod.run("ps", "-eo", "args").stdout


def test_the_cluster_s_own_work_runs_again_in_the_pod_and_is_not_there_twice(make: Make) -> None:
    command = "until [ -e /tmp/end ]; do sleep 0.1; done; echo done"
    cluster = make({**QUIET, "state": {"claimName": "shared"}}, {"command": command}).start().wait_for_ready()
    until(lambda: [row.split()[1] for row in working(cluster)] == ["R"])
    cluster.lead.kill_broker()
    until(lambda: "R" in str(working(cluster)) and len(working(cluster)) == 2, 60)
    assert sorted(row.split()[1] for row in working(cluster)) in (["CA", "R"], ["F", "R"])
    for pod in pods(cluster):
        pod.run("touch", "/tmp/end")
    assert cluster.wait() == [0, 0, 0]
    # Fluxion may say that it starts again, for the resources of the job that was lost
    assert cluster.lead.log.splitlines().count("done") == 1


def working(cluster: Cluster) -> list[str]:
    done = cluster.lead.run(f"{MOUNT}/bin/flux", "jobs", "-a", "-n", "-o", "{id} {status_abbrev}")
    return done.stdout.splitlines()


def test_a_worker_that_waits_for_the_goodbye_of_a_lost_lead_is_soon_back(make: Make) -> None:
    cluster = make({**QUIET, "size": 2}).start().wait_for_ready()
    lead, worker = (broker(pod) for pod in pods(cluster))
    # a lead that stands still neither answers nor lets go
    os.kill(lead, signal.SIGSTOP)
    os.kill(worker, signal.SIGTERM)
    state = 'import flux; print(flux.Flux().rpc("state-machine.get").get()["state"])'
    asks = partial(cluster.pods[1].run, f"{MOUNT}/bin/flux", "python", "-c", state)
    # an older Flux doesn't wait
    until(lambda: not Path(f"/proc/{worker}").exists() or "goodbye" in asks().stdout, 60)
    os.kill(lead, signal.SIGKILL)
    begin = time.monotonic()
    # by itself it waits for 60 s
    until(lambda: not Path(f"/proc/{worker}").exists(), 30)
    print(f"the worker's broker ended {time.monotonic() - begin:.1f} s after the lead's")
    until(lambda: runs_jobs(cluster, nodes=2), 60)


def broker(pod: Pod) -> int:
    """Return the process id of a pod's broker on this host."""
    children = Path(f"/proc/{pod.first}/task/{pod.first}/children").read_text().split()
    found = [int(pid) for pid in children if "flux-broker" in Path(f"/proc/{pid}/cmdline").read_text()]
    return found[0]
