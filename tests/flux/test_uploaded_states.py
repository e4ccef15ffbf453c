"""The program by which the lead takes what it has of a folder that comes, and removes what no job needs."""

import json
import subprocess
from pathlib import Path

from broker_clusters import Cluster, Make
from minicluster.exec.upload import digest_of, files_of, state_of
from minicluster.lead.program import BOOT, first_line, program_text

from tools.releases import MOUNT

FLUX = f"{MOUNT}/bin/flux"
NAMES = [f"{number:020x}" for number in range(8)]
UPLOADS = f"{MOUNT}/uploads"
#: Of the text "same" and its line's end
SAME = "a6328afc76e9db71da297ebff4b0d3e7a7eb3b01d917c05a6573fef121b6ecb6"
#: Makes states of a folder, the first one the oldest
MAKE = 'cd "$0" && for name; do mkdir -p $name/mine && echo $name >$name/mine/own && echo same >$name/mine/file; done'
AGE = 'cd "$0" && age=9; for name; do touch -d "-$age hours" $name; age=$((age - 1)); done'


def request(cluster: Cluster, name: str, states: dict[str, str] | None = None) -> list[str]:
    """Return the names that are missing of a state that comes."""
    states = states or {"file": f"file {SAME}", "other": f"file {SAME}"}
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
        folders = [name for name in pod.run("ls", UPLOADS).stdout.split() if "." not in name]
        assert folders == [*left, *new, "with-packages"]


def bring(cluster: Cluster, place: str, folder: Path, *, to: str = "mine") -> str:
    """Bring a folder to the lead, and from there to all nodes, as a client does; return what failed."""
    states = {name: state_of(path) for name, path in files_of(folder).items()}
    missing = request(cluster, place, states)
    words = (
        ("tar", "-C", str(folder), "-cf", "-", "--", *missing) if missing else ("tar", "-cf", "-", "-T", "/dev/null")
    )
    archive = subprocess.run(words, check=True, capture_output=True)
    (cluster.lead.state / "archive").write_bytes(archive.stdout)
    goal = f"{UPLOADS}/{place}/{to}"
    made = cluster.lead.run("sh", "-c", f'mkdir -p "$0" && tar -xmf {MOUNT}/archive -C "$0"', goal)
    assert made.stderr == ""
    (cluster.lead.state / "program").write_text(first_line("distribute"))
    words = (FLUX, "python", "-c", BOOT, f"{UPLOADS}/{place}", to, "key", "minicluster", "0", program_text("uploads"))
    done = cluster.lead.run("sh", "-c", f'exec "$@" <{MOUNT}/program', "sh", *words)
    assert done.stdout == ""
    return str(done.stderr)


SHOW = """cd "$0" && find . -exec stat -c '%n %F %A %N' {} + | sort && find . -type f -exec sha256sum {} + | sort"""


def test_nodes_get_what_has_changed_and_take_the_rest_from_before(make: Make, tmp_path: Path) -> None:
    cluster, folder = make({"size": 3}, {"cores": 2}).start().wait_for_ready(), tmp_path / "mine"
    (folder / "deep/er").mkdir(parents=True)
    for name in ("large", "own", "deep/er/-n é'", "changed", "gone"):
        (folder / name).write_bytes(name.encode() * 300_000)
    (folder / "own").chmod(0o755)
    (folder / "link").symlink_to("nowhere")

    def shown(index: int, place: str) -> str:
        return str(cluster.pods[index].run("sh", "-c", SHOW, f"{UPLOADS}/{place}/mine").stdout)

    assert bring(cluster, NAMES[0], folder) == ""
    assert shown(1, NAMES[0]) == shown(0, NAMES[0]) == shown(2, NAMES[0]) != ""
    # a job changes a file on a node, which then lacks it; a node loses the whole state
    cluster.pods[1].run("sh", "-c", f"echo more >>{UPLOADS}/{NAMES[0]}/mine/own")
    (folder / "changed").write_text("new")
    (folder / "deep/new").write_text("new")
    (folder / "gone").unlink()
    # what a node has of before is its own: with the note that nobody changed it
    note = f"{UPLOADS}/{NAMES[0]}.here"
    cluster.pods[2].run("sh", "-c", f"echo its own >{UPLOADS}/{NAMES[0]}/mine/large; sleep 0.1; : >{note}")
    assert bring(cluster, NAMES[1], folder) == ""
    assert shown(1, NAMES[1]) == shown(0, NAMES[1]) != shown(0, NAMES[0])
    own = cluster.pods[2].run("cat", f"{UPLOADS}/{NAMES[1]}/mine/large").stdout
    assert own == "its own\n"
    texts = [
        pod.run("sh", "-c", f"cd {UPLOADS}/{NAMES[1]}/mine && cat changed deep/new").stdout
        for pod in cluster.pods.values()
    ]
    assert texts == ["newnew"] * 3
    # a node that comes later gets all when a job of it begins, also in an instance of its own
    cluster.pods[1].run("rm", "-rf", UPLOADS)
    words = ("-N3", f"--cwd={UPLOADS}/{NAMES[1]}/mine", "sh", "-c", "echo $(pwd) $(cat changed)")
    there = f"{UPLOADS}/{NAMES[1]}/mine new"
    assert sorted(cluster.lead.flux("run", *words).splitlines()) == [there] * 3
    assert shown(1, NAMES[1]) == shown(0, NAMES[1])
    cluster.pods[1].run("rm", "-rf", UPLOADS)
    allocated = cluster.lead.flux("alloc", *words[:2], "flux", "run", *words)
    assert [line for line in sorted(allocated.splitlines()) if line == there] == [there] * 3
    done = cluster.lead.run(FLUX, "run", f"--cwd={UPLOADS}/none/mine", "true")
    assert done.returncode
    assert f"minicluster: {UPLOADS}/none/mine is not on this node" in done.stderr
    # who has it is left alone, and a node that comes later gets all
    cluster.pods[1].run("sh", "-c", f"rm -rf {UPLOADS}; mkdir {UPLOADS}")
    assert bring(cluster, NAMES[1], folder) == ""
    assert shown(1, NAMES[1]) == shown(0, NAMES[1])
    assert cluster.pods[2].run("cat", f"{UPLOADS}/{NAMES[1]}/mine/large").stdout == own
