"""The program by which the lead takes what it has of a folder that comes, and removes what no job needs."""

import json
import subprocess

from broker_clusters import Cluster, Make
from minicluster.exec.upload import digest_of
from minicluster.lead.program import BOOT, first_line

from tools.releases import MOUNT

FLUX = f"{MOUNT}/bin/flux"
NAMES = [f"{number:020x}" for number in range(8)]
UPLOADS = f"{MOUNT}/uploads"
#: Of the text "same" and its line's end
SAME = "a6328afc76e9db71da297ebff4b0d3e7a7eb3b01d917c05a6573fef121b6ecb6"
#: Makes states of a folder, the first one the oldest
MAKE = 'cd "$0" && for name; do mkdir -p $name/mine && echo $name >$name/mine/own && echo same >$name/mine/file; done'
AGE = 'cd "$0" && age=9; for name; do touch -d "-$age hours" $name; age=$((age - 1)); done'


def request(cluster: Cluster, name: str) -> list[str]:
    """Return the names that are missing of a state that comes."""
    states = {"file": f"file {SAME}", "other": f"file {SAME}"}
    text = json.dumps({"place": f"{UPLOADS}/{name}", "name": "mine", "states": states})
    (cluster.lead.state / "program").write_text(f"{first_line('uploads')}")
    (cluster.lead.state / "request").write_text(f"{text}\n")
    # the request comes when the program is there
    start = f'{{ cat {MOUNT}/program; sleep 2; cat {MOUNT}/request; }} | "$@"'
    done: subprocess.CompletedProcess[str] = cluster.lead.run("sh", "-c", start, "sh", FLUX, "python", "-c", BOOT)
    assert (done.returncode, done.stderr) == (0, "")
    missing: list[str] = json.loads(done.stdout.splitlines()[-1])["missing"]
    return missing


def test_old_states_that_no_job_needs_go_from_all_nodes(make: Make) -> None:
    assert len(digest_of({})) == len(NAMES[0])
    cluster = make({"size": 2, "interactive": True}, {"cores": 2}).start().wait_for_ready()
    for pod in cluster.pods.values():
        pod.run("mkdir", UPLOADS, f"{UPLOADS}/with-packages")
        pod.run("sh", "-c", MAKE, UPLOADS, *NAMES[:-1])
        pod.run("sh", "-c", AGE, UPLOADS, *NAMES[:-1])
    cluster.lead.flux("submit", f"--cwd={UPLOADS}/{NAMES[1]}/mine", "sleep", "600")
    cluster.lead.flux("submit", "--urgency=hold", f"--cwd={UPLOADS}/{NAMES[2]}/mine", "true")
    # the lead has one of two files, and knows it by what came
    (cluster.lead.state / "uploads" / f"{NAMES[-2]}.json").write_text(json.dumps({"file": f"file {SAME}"}))
    assert request(cluster, NAMES[-1]) == ["other"]
    left = [NAMES[1], NAMES[2], *NAMES[4:-1]]
    for pod, new in zip(cluster.pods.values(), ([NAMES[-1]], []), strict=True):
        folders = [name for name in pod.run("ls", UPLOADS).stdout.split() if not name.endswith(".json")]
        assert folders == [*left, *new, "with-packages"]
