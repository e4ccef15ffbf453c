"""Options of Flux and of logging, the certificate, and many kinds of images."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from broker_clusters import Cluster, Make
from broker_pods import PATH, Flux, Pod

from tools.clients import until
from tools.releases import MOUNT

QUIET = {"logging": {"quiet": True}}
HELLO = {"command": "echo hello world"}


def wall_time(name: str, line: str) -> float:
    """Return the seconds of a FLUXTIME line."""
    match = re.fullmatch(rf"FLUXTIME {name} wall time 0:(\d\d\.\d\d)", line)
    assert match, line
    return float(match[1])


def test_timed_logging_prints_the_wall_times(make: Make) -> None:
    cluster = make({"size": 2, "logging": {"quiet": True, "timed": True}}, {"command": "sleep 1.2; echo job"})
    assert cluster.run() == [0, 0]
    job, submit, start = cluster.lead.log.splitlines()
    assert job == "job"
    assert 1.2 <= wall_time("fluxsubmit", submit) <= wall_time("fluxstart", start)
    assert re.fullmatch(r"FLUXTIME fluxstart wall time 0:\d\d\.\d\d\n", cluster.pods[1].log)


def test_timed_logging_prints_the_wall_times_when_the_job_fails(make: Make) -> None:
    cluster = make({"logging": {"quiet": True, "timed": True}}, {"command": "exit 3"})
    assert cluster.run() == [3]
    assert [line.split()[1] for line in cluster.lead.log.splitlines() if line.startswith("FLUXTIME")] == [
        "fluxsubmit",
        "fluxstart",
    ]


def keys(cluster: Cluster) -> list[str]:
    """Return the keys of a cluster's certificate."""
    found = re.findall(r'-key = "(.{40})"', cluster.data["curve"]["curve.cert"])
    assert len(found) == 2
    return found


def test_the_most_verbose_log_has_no_key_of_the_certificate(make: Make) -> None:
    logging = {"debug": True, "zeromq": True, "timed": True, "strict": True}
    commands = {"init": "set -x", "post": "true"}
    cluster = make({"size": 2, "logging": logging, "flux": {"logLevel": 7}}, {**HELLO, "commands": commands})
    assert cluster.run() == [0, 0]
    for pod in cluster.pods.values():
        assert not [key for key in keys(cluster) if key in pod.log]
    assert "hello world" in cluster.lead.log.splitlines()
    assert "flux run -n 1 --job-name=echo -vvv" in cluster.lead.log


def command_lines() -> str:
    """Return the command line and the environment of each process on this host."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                found.append((process / name).read_bytes().decode(errors="replace"))
            except OSError:
                continue
    return "\n".join(found)


def test_the_certificate_is_readable_by_its_user_alone_and_in_no_command_line(make: Make) -> None:
    cluster = make({"size": 2, **QUIET}).start().wait_for_ready()
    certificate = cluster.lead.state / "config/curve/curve.cert"
    assert stat.S_IMODE(certificate.stat().st_mode) == 0o400
    assert certificate.read_text() == cluster.data["curve"]["curve.cert"]
    seen = command_lines()
    assert "flux-sample" in seen
    assert not [key for key in keys(cluster) if key in seen]
    assert not [name for name, text in cluster.data["minicluster"].items() for key in keys(cluster) if key in text]


def test_disable_socket_hides_the_instance_from_flux_in_an_exec(make: Make) -> None:
    values = {"size": 2, **QUIET, "flux": {"disableSocket": True}}
    cluster = make(values, {"command": "flux getattr size; until [ -e /tmp/end ]; do sleep 0.1; done"}).start()
    cluster.wait_for_ready()
    assert cluster.lead.run(f"{MOUNT}/bin/flux", "getattr", "size").returncode != 0
    assert not (cluster.lead.state / "config/run/flux/local").exists()
    cluster.lead.run("touch", "/tmp/end")
    assert cluster.wait() == [0, 0]
    assert cluster.lead.log == "2\n"


def test_the_socket_of_the_broker_is_in_the_run_folder(make: Make) -> None:
    cluster = make(QUIET, {"command": "echo $FLUX_URI"})
    assert cluster.run() == [0]
    assert cluster.lead.log == f"local://{MOUNT}/config/run/flux/local\n"


def test_the_value_wrap_runs_the_broker_in_a_wrapper(make: Make) -> None:
    commands = {
        "init": "printf '#!/bin/sh\\necho wrapped >>/tmp/wrapped; exec \"$@\"\\n' >/tmp/wrap; chmod +x /tmp/wrap"
    }
    cluster = make({**QUIET, "flux": {"wrap": "/tmp/wrap"}}, {"command": "cat /tmp/wrapped", "commands": commands})
    assert cluster.run() == [0]
    assert cluster.lead.log == "wrapped\n"


def test_a_wrong_broker_config_ends_the_lead_at_once(make: Make, flux: Flux) -> None:
    flux.since(81, "it ignores a wrong key")
    toml = '[bootstrap]\nhosts = [{host = "flux-sample-[0-1]"}]\nnonsense = 1\n'
    cluster = make({"size": 2, "flux": {"brokerConfig": toml}}, HELLO)
    cluster.start([0])
    assert cluster.wait() == [1]
    assert "nonsense" in cluster.lead.log
    assert cluster.lead.log.endswith("minicluster: the broker did not start, exit code 1\n")


def test_a_pod_without_flux_names_the_value_to_set(make: Make, flux: Flux) -> None:
    missing = Path("/nonexistent")
    cluster = make(QUIET, HELLO, **({"view": missing} if flux.view else {"hide": "flux"}))
    assert cluster.run() == [127]
    place = missing if flux.view else "in PATH"
    message = f"there is no flux here ({place}): set flux.container.image to a view for this image's distribution"
    assert cluster.lead.log == f"minicluster: {message}\n"


#: What flux-core before 0.77 lacks
NEEDS_BASH = "its start-up scripts need bash"
IMAGES = {
    "sh is bash": {"sh": "bash"},
    "sh is dash": {"sh": "dash"},
    "no bash": {"sh": "dash", "hide": "bash"},
    "next to nothing": {"sh": "dash", "hide": "bash python3 hostname time ip sudo munge setsid awk perl which"},
    "read-only": {"read_only": True},
    "read-only, no home": {"read_only": True, "environment": {"HOME": "/nonexistent"}},
    "home is the root": {"environment": {"HOME": "/"}},
    "no HOME, no SHELL": {"environment": {"HOME": "", "SHELL": ""}},
}


def python_of(flux: Flux) -> Path:
    """Return the Python that runs Flux's own commands."""
    found = subprocess.run([flux.path, "python", "-c", WHICH], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip())


WHICH = "import os, sys; print(os.path.realpath(sys.executable))"


@pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)
def test_the_scripts_run_in_many_kinds_of_images(make: Make, flux: Flux, image: dict[str, Any]) -> None:
    if "bash" in image.get("hide", ""):
        flux.since(77, NEEDS_BASH)
    found = shutil.which("python3", path=PATH)
    if found and python_of(flux) == Path(found).resolve():
        # Flux uses the image's Python, so the image must have it
        image = {**image, "hide": image.get("hide", "").replace("python3", "")}
    commands = {"init": "export A=a", "post": ": $A"}
    cluster = make({"size": 2, **QUIET}, {"command": "echo hello $A; exit 3", "commands": commands}, **image)
    assert cluster.run() == [3, 0]
    failed = ["flux-job: task(s) exited with exit code 3", "minicluster: the job failed with exit code 3"]
    # the output and Flux's word about it come by two ways
    assert sorted(cluster.lead.log.splitlines()) == [failed[0], "hello a", failed[1]]
    assert cluster.pods[1].log == ""


def test_a_strict_snippet_fails_the_pod_in_an_image_without_bash(make: Make) -> None:
    cluster = make(QUIET, {**HELLO, "commands": {"pre": "false"}}, sh="dash", hide="bash")
    assert cluster.run() == [1]


def test_a_script_runs_in_an_image_without_bash(make: Make, flux: Flux) -> None:
    flux.since(77, NEEDS_BASH)
    cluster = make(QUIET, {"commands": {"script": "echo $((1 + 1))"}}, sh="dash", hide="bash")
    assert cluster.run() == [0]
    assert cluster.lead.log == "2\n"


@pytest.mark.parametrize("read_only", [False, True])
def test_a_user_without_a_passwd_entry_runs_jobs_in_a_home_of_its_own(make: Make, read_only: bool) -> None:
    if os.geteuid():
        pytest.skip("only root becomes another user")
    cluster = make({"size": 2, **QUIET}, {"command": "id -u; cd && touch here && ls"}, user=12345, read_only=read_only)
    assert cluster.run() == [0, 0]
    assert cluster.lead.log.split()[0] == "12345"
    assert (cluster.lead.state / "config/curve/curve.cert").stat().st_uid == 12345


def test_flux_of_a_view_runs_the_work(make: Make) -> None:
    if not Path("/opt/views/view/bin/flux").exists():
        pytest.skip("no view in /opt/views/view")
    command = "flux resource list -n -o {nnodes} -s up; echo ${PYTHONPATH-unset}; ls /mnt/flux/view/bin/flux"
    cluster = make({"size": 2, **QUIET}, {"command": command}, flux=None)
    assert cluster.run() == [0, 0]
    assert cluster.lead.log == "2\nunset\n/mnt/flux/view/bin/flux\n"


def test_tools_of_the_view_do_not_hide_those_of_the_image(make: Make) -> None:
    if not Path("/opt/views/view/bin/python3").exists():
        pytest.skip("no view with a Python in /opt/views/view")
    cluster = make(QUIET, {"command": "command -v python3"}, flux=None)
    assert cluster.run() == [0]
    assert cluster.lead.log == "/usr/bin/python3\n"


def test_flux_view_sh_gives_a_shell_in_the_pod_the_instance(make: Make) -> None:
    cluster = make(QUIET).start().wait_for_ready()
    done = cluster.lead.run("sh", "-c", f". {MOUNT}/flux-view.sh && flux getattr size && echo $fluxsocket")
    assert done.stdout == f"1\nlocal://{MOUNT}/config/run/flux/local\n"


def test_the_first_lines_of_the_log_name_the_pod_the_version_and_the_command(make: Make) -> None:
    cluster = make({"size": 2, "maxSize": 3}, HELLO)
    assert cluster.run() == [0, 0]
    first = cluster.lead.log.splitlines()[0]
    assert re.fullmatch(r"minicluster: flux-sample-0 of 2 \(max 3\), Flux \d+\.\d+\.\d+\S*", first)
    assert "minicluster: flux run -n 1 --job-name=echo" in cluster.lead.log.splitlines()


def logs_of(pod: Pod) -> str:
    """Return what the broker of a pod has logged to its files."""
    return "".join(file.read_text() for file in sorted((pod.state / "config/run").glob("broker.log*"), reverse=True))


def test_the_log_is_the_output_of_the_work_and_few_lines_of_ours(make: Make) -> None:
    cluster = make({"size": 2}, {"command": "echo hi"})
    assert cluster.run() == [0, 0]
    # Flux 0.54 has two such errors for each job
    lines = [line for line in cluster.lead.log.splitlines() if "callback returned error" not in line]
    assert [re.sub(r", Flux .*|(?<=scheduler: ).*", "", line) for line in lines] == [
        "minicluster: flux-sample-0 of 2 (max 2)",
        "minicluster: scheduler: ",
        "minicluster: flux run -n 1 --job-name=echo",
        "hi",
    ]
    assert cluster.pods[1].log == "minicluster: flux-sample-1 of 2 (max 2)\n"
    for index, pod in cluster.pods.items():
        assert re.search(rf"broker\.info\[{index}\]: quorum-full: quorum->run", logs_of(pod))
        assert re.search(rf"broker\.info\[{index}\]: rc3\.0: .* Exited \(rc=0\)", logs_of(pod))


@pytest.mark.parametrize("values", [{"flux": {"logLevel": 6}}, {"logging": {"debug": True}}], ids=["level", "debug"])
def test_the_log_has_what_the_brokers_say_if_the_values_want_it(make: Make, values: dict[str, Any]) -> None:
    cluster = make({"size": 2, **values}, {"command": "echo hi"})
    assert cluster.run() == [0, 0]
    for index, pod in cluster.pods.items():
        assert f"broker.info[{index}]: quorum-full: quorum->run" in pod.log
        assert logs_of(pod) == ""


def test_the_file_of_the_lead_s_broker_stays_small(make: Make) -> None:
    cluster = make({"size": 2})
    programs = cluster.data["minicluster"]
    programs["log.py"] = programs["log.py"].replace("LOG_BYTES = 1 << 20", "LOG_BYTES = 100")
    cluster.start().wait_for_ready()
    old, new = (cluster.lead.state / "config/run" / name for name in ("broker.log.old", "broker.log"))
    # the end of a job is looked at
    cluster.lead.flux("run", "true")
    until(old.exists)
    # the broker goes on writing to its file
    cluster.lead.shut_down("--quiet")
    assert cluster.lead.wait() == 0
    assert "rc3.0" in new.read_text()
    assert "rc1.0" not in new.read_text()


def test_a_lead_is_ready_at_the_quorum_and_a_worker_with_its_broker(make: Make) -> None:
    cluster = make({"size": 3, **QUIET})
    programs = cluster.data["minicluster"]
    # the probe looks once
    programs["ready.sh"] = programs["ready.sh"].replace("TRIES=50", "TRIES=0")
    cluster.start([0, 1])
    until(lambda: cluster.pods[1].ready)
    assert not cluster.lead.ready
    cluster.start([2])
    until(lambda: cluster.lead.ready)


def test_jobs_do_not_see_the_stand_in_for_bash_of_the_broker(make: Make, flux: Flux) -> None:
    flux.since(77, NEEDS_BASH)
    cluster = make(QUIET, {"command": "command -v bash || echo none"}, sh="dash", hide="bash")
    assert cluster.run() == [0]
    assert cluster.lead.log == "none\n"


def errors_of(log: str) -> list[str]:
    """Return the messages of a broker's errors, without time, level and module."""
    return [re.sub(r".*\w+\.(err|crit)\[\d+\]: ", "", line) for line in log.splitlines()]


@pytest.mark.parametrize("quiet", [False, True])
def test_a_lead_that_can_not_start_logs_the_reason(make: Make, quiet: bool) -> None:
    without_resources = {"brokerPre": 'echo "{}" >"$MINICLUSTER_HOME/config/etc/flux/system/R"'}
    cluster = make({"logging": {"quiet": quiet}}, {**HELLO, "commands": without_resources})
    assert cluster.run() == [1]
    said = errors_of(cluster.lead.log)
    assert "error parsing R: Object item not found: version" in said
    assert said[-1] == "minicluster: the broker did not start, exit code 1"
    if quiet:
        assert len(said) <= 7 and "info[" not in cluster.lead.log


def test_a_worker_that_can_not_start_logs_the_reason_although_it_is_quiet(make: Make) -> None:
    cluster = make({"size": 2, **QUIET}, HELLO)
    cluster.data["minicluster"]["broker.toml"] += "[broken"
    cluster.start([1])
    until(lambda: "starts again" in cluster.pods[1].log)
    why, end = cluster.pods[1].log.splitlines()[:2]
    assert "broker.toml" in why
    assert end == "minicluster: the broker ended with exit code 1 and starts again in 1 s"
