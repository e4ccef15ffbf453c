"""A worker's broker that ends, or loses the connection to its lead."""

import resource
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from minicluster.pod import programs
from pods import RETRY, Make, until

QUIET = {"logging": {"quiet": True}}
CONNECTIONS = 300
#: CPU time of a look among them: more than ten times what it takes
LOOK_SECONDS = 0.5


def cpu() -> float:
    """Return the CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def put(file: Path, text: str) -> None:
    """Write a file that is never seen half written, as those of /proc/net are not."""
    whole = file.with_suffix(".whole")
    whole.write_text(text)
    whole.replace(file)


def lines(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def test_a_workers_broker_that_has_run_for_a_while_starts_again_at_once(make: Make, shell: str) -> None:
    if shell == "busybox":
        pytest.skip("it has a sleep of its own")
    pod = make({"size": 2, **QUIET}, index=1)
    pod.edit("worker.sh", "watch_connection /proc/net", "true")
    pod.edit("worker.sh", "SHORT_SECONDS=2", "SHORT_SECONDS=0")
    pod.edit("broker.sh", "guard_node &", "true &")
    pod.command("sleep", '#!/bin/sh\necho "$1" >>$MINICLUSTER_HOME/pauses\n')
    pod.play("start", f"[ $(wc -l <{pod.root}/calls) -lt 4 ] || : >$MINICLUSTER_HOME/config/run/ended; exit 1")
    again = "minicluster: the broker ended with exit code 1 and starts again\n"
    assert pod.run() == (0, again * 3)
    assert not (pod.home / "pauses").exists()


def test_a_worker_that_loses_its_connection_sees_to_its_broker(make: Make) -> None:
    # the port is that of the brokers, whoever chose it
    pod = make({"size": 2, **QUIET, "flux": {"brokerConfig": "[bootstrap]\ndefault_port = 9000"}}, index=1)
    net = pod.root / "net"
    net.mkdir()
    head = "  sl  local_address rem_address   st tx_queue rx_queue\n"
    # a connection that closes; one to another port; one that it accepts as a parent in the tree
    others = ["0100007F:8D2C 0200007F:2328 08", "0100007F:8D2C 0200007F:1F90 01", "0100007F:2328 0200007F:8D2C 01"]
    lost = head + "".join(f"   0: {each} 00000000:00000000\n" for each in others)
    put(net / "tcp", lost)
    put(net / "tcp6", head + "   0: 0000:8D2C 0000:2328 01 00000000:00000000\n")
    pod.edit("worker.sh", "watch_connection /proc/net", f"watch_connection {net}")
    looks = pod.root / "looks"
    pod.edit("watch.sh", 'sleep "$pause"', f"echo look >>{looks}; sleep 0.1")
    process = pod.start()
    until((pod.run_folder / "flux/local").exists)
    until(lambda: len(lines(looks)) > 3)
    assert pod.calls("python", "lost_lead.py") == []
    # it has a successor at once
    put(net / "tcp6", head + "   0: 0000:8D2D 0000:2328 01 00000000:00000000\n")
    until(lambda: pod.calls("python", "lost_lead.py"))
    [call] = pod.calls("python", "lost_lead.py")
    assert call.env["FLUX_URI"] == f"local://{pod.run_folder}/flux/local"
    (net / "tcp6").unlink()
    until(lambda: len(pod.calls("python", "lost_lead.py")) == 2)
    count = len(lines(looks))
    until(lambda: len(lines(looks)) > count + 2)
    assert process.stop() == RETRY
    assert len(pod.calls("python", "lost_lead.py")) == 2


def test_a_look_at_the_connections_costs_little_beside_many_others(shell: str) -> None:
    # with pod.hostNetwork a pod sees those of its Kubernetes node
    words = ["busybox", "sh"] if shell == "busybox" else [shell]
    with ExitStack() as stack:
        server, others = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2))
        client = stack.enter_context(socket.create_connection(server.getsockname()))
        for _ in range(CONNECTIONS):
            stack.enter_context(socket.create_connection(others.getsockname()))
            stack.enter_context(others.accept()[0])
        port, local = (f"{each.getsockname()[1]:04X}" for each in (server, client))
        script = '. "$1/shell.sh"; . "$1/watch.sh"; mc_port_hex=$2; find_connections /proc/net; echo "$connections"'
        before = cpu()
        folder = programs()["watch.sh"].parent
        found = subprocess.check_output([*words, "-euc", script, "sh", str(folder), port], text=True)
    assert (found, cpu() - before < LOOK_SECONDS) == (f" 0100007F:{local} \n", True)
