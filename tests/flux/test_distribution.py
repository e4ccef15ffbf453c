"""The program by which `minicluster copy --all` brings files from the lead to all nodes, with real brokers."""

import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from broker_clusters import Cluster, Make
from minicluster.lead.program import BOOT, first_line

from tools.clients import until
from tools.releases import MOUNT

FLUX = f"{MOUNT}/bin/flux"
KEY = "minicluster-key"
#: Files of the folder $1: with no bytes, some, and several blobs; an empty folder, links, and names of all kinds
MAKE = """
mkdir -p "$1/empty" "$1/-n a'b" && cd "$1"
: >none
echo some >'-n a'\\''b/$(id) "é😀*"'
head -c 3000000 /dev/urandom >large
chmod 750 large
ln -s large link
ln -s /nowhere dangling
"""
SHOW = """cd "$1" && find . -exec stat -c '%n %F %A' {} + | sort && find . -type f -exec sha256sum {} + | sort"""
PARENT = "/tmp/new '$x'"
NAME = '-a "é"'
THREE = {"size": 3}


def distribute(cluster: Cluster, *hosts: str, folder: str = PARENT, name: str = NAME) -> tuple[int, str, str]:
    """Run the program on the lead; return its exit code, its output and its errors."""
    (cluster.lead.state / "program").write_text(first_line("distribute"))
    start = f'echo $$ >{MOUNT}/pid; exec "$@" <{MOUNT}/program'
    words = (FLUX, "python", "-c", BOOT, folder, name, KEY, "minicluster", "0", "", *hosts)
    done: subprocess.CompletedProcess[str] = cluster.lead.run("sh", "-c", start, "sh", *words)
    return done.returncode, done.stdout, done.stderr


def show(cluster: Cluster, index: int, path: str = f"{PARENT}/{NAME}") -> str:
    """Return what there is in a folder of a pod."""
    return cluster.pods[index].run("sh", "-c", SHOW, "sh", path).stdout


def forgotten(cluster: Cluster) -> bool:
    """Say whether Flux has no files any more."""
    listed = cluster.lead.run(FLUX, "archive", "list", "-n", KEY)
    if "not a flux command" in listed.stderr:
        listed = cluster.lead.run(FLUX, "filemap", "list", "-T", KEY)
    return listed.stdout == ""


@pytest.fixture
def three(make: Make) -> Cluster:
    cluster = make(THREE).start().wait_for_ready()
    assert cluster.lead.run("sh", "-c", MAKE, "sh", f"{PARENT}/{NAME}").stderr == ""
    return cluster


def test_a_folder_comes_to_all_nodes_as_it_is_on_the_lead(three: Cluster) -> None:
    hosts = [f"flux-sample-{index}" for index in range(3)]
    assert distribute(three, *hosts) == (0, "", "")
    assert show(three, 0).count("\n") == 11
    assert show(three, 1) == show(three, 2) == show(three, 0)
    assert forgotten(three)
    # again, with other contents
    assert three.lead.run("sh", "-c", MAKE.replace("ln -s", ": "), "sh", f"{PARENT}/{NAME}").stderr == ""
    assert distribute(three) == (0, "", "")
    assert show(three, 1) == show(three, 2) == show(three, 0)
    # a single file
    assert distribute(three, folder=f"{PARENT}/{NAME}", name="none") == (0, "", "")


def test_a_node_that_fails_is_named_and_the_others_have_the_files(three: Cluster) -> None:
    assert three.pods[2].run("touch", PARENT).returncode == 0
    code, out, err = distribute(three)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("minicluster: flux-sample-2: mkdir: ")
    assert show(three, 1) == show(three, 0)
    assert forgotten(three)
    # one that can't say why
    assert three.pods[1].run("mount", "--bind", "/bin/false", str(Path("/bin/sh").resolve())).returncode == 0
    code, _, err = distribute(three)
    assert (code, err.count("\n")) == (1, 2)
    assert err.startswith("minicluster: flux-sample-1: Exit 1\n")
    code, _, err = distribute(three, name="missing")
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("minicluster: flux-sample-0: ")
    assert "missing: No such file or directory" in err


def test_a_node_that_is_down_is_named(make: Make) -> None:
    cluster = make({"size": 2, "maxSize": 4}).start().wait_for_ready()
    cluster.lead.run("touch", "/tmp/file")
    hosts = [f"flux-sample-{index}" for index in range(3)]
    down = "minicluster: flux-sample-2: down, so the files are not there\n"
    assert distribute(cluster, *hosts, folder="/tmp", name="file") == (0, "", down)
    assert cluster.pods[1].run("test", "-e", "/tmp/file").returncode == 0


def test_files_on_a_volume_of_all_nodes_are_left_alone(make: Make) -> None:
    cluster = make({"size": 2}).start().wait_for_ready()
    # unlike /tmp, it is that of this machine in all pods
    with tempfile.TemporaryDirectory(dir="/var/tmp") as shared:
        path = Path(shared, "large")
        path.write_bytes(b"x" * 1_000_000)
        before = path.stat()
        assert distribute(cluster, folder=shared, name="large") == (0, "", "")
        after = path.stat()
        assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
        assert list(Path(shared).iterdir()) == [path]


def test_files_that_came_before_come_to_another_place(make: Make) -> None:
    cluster = make({"size": 2}).start().wait_for_ready()
    # more than Flux keeps in memory for long, which forgets file by file
    made = (
        "mkdir -p /tmp/a/x /tmp/b; head -c 20000000 /dev/urandom | split -b 1000000 - /tmp/a/x/; cp -r /tmp/a/x /tmp/b"
    )
    assert cluster.lead.run("sh", "-c", made).returncode == 0
    assert distribute(cluster, folder="/tmp/a", name="x") == (0, "", "")
    broker = cluster.pods[1].flux("getattr", "broker.pid").strip()
    assert cluster.pods[1].run("kill", "-STOP", broker).returncode == 0
    done: list[tuple[int, str, str]] = []
    thread = threading.Thread(target=lambda: done.append(distribute(cluster, folder="/tmp/b", name="x")))
    thread.start()
    until(lambda: not forgotten(cluster))
    # what it has of the first time goes meanwhile
    until(lambda: int(cluster.lead.flux("module", "stats", "--parse=size", "content")) < 18_000_000)
    assert cluster.pods[1].run("kill", "-CONT", broker).returncode == 0
    thread.join(60)
    assert done == [(0, "", "")]
    assert show(cluster, 1, "/tmp/a/x") == show(cluster, 1, "/tmp/b/x") == show(cluster, 0, "/tmp/b/x")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_flux_forgets_the_files_when_the_program_is_told_to_stop(three: Cluster, number: signal.Signals) -> None:
    broker = three.pods[2].flux("getattr", "broker.pid").strip()
    assert three.pods[2].run("kill", "-STOP", broker).returncode == 0
    done: list[tuple[int, str, str]] = []
    thread = threading.Thread(target=lambda: done.append(distribute(three)))
    thread.start()
    until(lambda: show(three, 1) == show(three, 0))
    assert not forgotten(three)
    assert three.lead.run("kill", f"-{number}", (three.lead.state / "pid").read_text().strip()).returncode == 0
    thread.join(30)
    assert three.pods[2].run("kill", "-CONT", broker).returncode == 0
    assert done == [(128 + number, "", "")]
    assert forgotten(three)
