import json
import re
import shlex
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
import yaml
from autoscale import Policy
from hypothesis import given, settings
from hypothesis import strategies as st
from minicluster.documents import yamlio
from minicluster.errors import SpecError
from minicluster.pod import shipped
from minicluster.render import postrender, work
from minicluster.render import settings as render_settings
from minicluster.render.model import MiniClusterModel
from support import CERTIFICATE, EACH_SHELL, INSTALLED_SHELLS, load_all, run_shell

Make = Callable[..., MiniClusterModel]

#: Texts that the schema accepts: no control characters but tab and newline, no U+FFFE and U+FFFF.
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="\ufffe\uffff") | st.sampled_from("\t\n")
)
NASTY = [
    "plain",
    "",
    " lead and trail ",
    "'",
    '"',
    "''",
    "a 'b' \"c\"",
    "$HOME ${HOME} $(id) `id`",
    "$(NAME) $$(NAME) $$$",
    "\\",
    "\\\\n\\t",
    "trailing backslash \\",
    "a\nb",
    "\n",
    "\n\na\n\n",
    "  indented\nfirst line",
    "\n  second line indented",
    "\ttab",
    "a\t\nb ",
    "# no comment",
    "a # b",
    "a: b",
    "- a",
    "---",
    "---\na",
    "...",
    "%YAML",
    "{a: b}",
    "{{ .Values.size }}",
    "!!str",
    "&a *a",
    "|",
    ">",
    "=",
    "<<",
    "~",
    "null",
    "yes",
    "012",
    "0o7",
    "1e3",
    "1_000",
    "1:30",
    "2001-02-03",
    "2001-99-99",
    "0000-00-00",
    ".inf",
    "é ü 日本 🚀",
    "a\u00a0b",
    "*",
    "?",
    "~user",
    "-n",
    "-e x",
    "a;b & c && d || e | f > g < h",
    "!history",
    "EOF",
    "x" * 5000,
    " ".join(["word"] * 100),
]
TEXTS = st.one_of(st.sampled_from(NASTY), TEXT)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True).map(lambda name: f"T_{name}")


def rendered(cluster: MiniClusterModel) -> dict[str, dict[str, Any]]:
    """Return the documents by kind, as the post-renderer makes them."""
    made = postrender.documents(cluster, lambda: (b"p" * 40, b"s" * 40))
    return {document["kind"]: document for document in made}


def data(cluster: MiniClusterModel) -> dict[str, str]:
    """Return the data of the ConfigMap, through YAML as Kubernetes reads it.

    It is without the static scripts and the agent's settings, which have a test.
    """
    found = rendered(cluster)["ConfigMap"]["data"]
    kept = {key: text for key, text in found.items() if key not in shipped() and key != "agent.json"}
    return dict(*load_all(yamlio.dump(kept)))


def settings_of(data: dict[str, str], shell: str, names: list[str]) -> list[str]:
    """Return the values of variables after a real shell has sourced the settings."""
    echo = 'eval "$1"; shift; for name; do eval "printf \'%s\\\\0\' \\"\\${$name-unset}\\""; done'
    out = run_shell(shell, f"set -eu; {echo}", data["settings.sh"], *names, env={"PATH": "/nowhere"})
    return out.decode().split("\0")[:-1]


def words_of(text: str, shell: str, variable: str) -> list[str]:
    """Return the words of a list in the settings, split as the scripts split it."""
    out = run_shell(shell, f'eval "$1"; eval "set -- ${variable}"; printf "%s\\0" "$@"', text, env={"PATH": "/nowhere"})
    return out.decode().split("\0")[:-1]


def test_the_configmap_has_the_scripts_unchanged(cluster_of: Make) -> None:
    made = rendered(cluster_of({"flux": {"wrap": "strace"}}))["ConfigMap"]
    [config_map] = [one["data"] for one in load_all(yamlio.dump(made))]
    assert shipped()
    assert {key: config_map[key] for key in shipped()} == shipped()


def test_the_configmap_of_the_defaults_has_broker_toml_and_settings(cluster_of: Make) -> None:
    assert set(data(cluster_of())) == {"broker.toml", "settings.sh"}


WINDOWS = {"backlog": 1, "idle": 60, "suspend": 0, "give_up": None}
AGENT = {
    "name": "flux-sample",
    "namespace": "ns",
    "size": 2,
    "max_size": 8,
    "groups": [],
    "period": 10,
    "policy": None,
    "policy_keys": ["min", "max", *WINDOWS, "step_up", "step_down", "cpu_target", "handle"],
    "budget": None,
    "port": None,
    "container": "flux-sample",
    "cpu_request": 0.0,
}
POLICY = {"min": 1, "max": 8, **WINDOWS, "step_up": 0, "step_down": 0, "cpu_target": 0, "handle": False}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        ({"agent": {"periodSeconds": 3}}, {"period": 3}),
        ({"metrics": {"enabled": True}}, {"port": 8051}),
        ({"metrics": {"enabled": True, "port": 9100}}, {"port": 9100}),
        # off, the rest of it means nothing
        ({"autoscaling": {"max": 4}, "metrics": {"port": 9100}}, {}),
        ({"autoscaling": {"enabled": True}}, {"policy": POLICY}),
        (
            {
                "autoscaling": {
                    "enabled": True,
                    "min": 2,
                    "max": 4,
                    "backlogSeconds": 4,
                    "idleSeconds": 2,
                    "maxStepUp": 3,
                    "maxStepDown": 5,
                }
            },
            {"policy": {**POLICY, "min": 2, "max": 4, "backlog": 4, "idle": 2, "step_up": 3, "step_down": 5}},
        ),
        ({"autoscaling": {"enabled": True, "handle": True}}, {"policy": {**POLICY, "handle": True}}),
        (
            {"autoscaling": {"enabled": True, "suspendAfterSeconds": 7}, "state": {"claimName": "c"}},
            {"policy": {**POLICY, "suspend": 7}},
        ),
        (
            {
                "autoscaling": {"enabled": True, "targetCPUUtilizationPercentage": 60},
                "containers": [{"name": "app", "resources": {"requests": {"cpu": "1500m"}, "limits": {"cpu": 4}}}],
            },
            {"policy": {**POLICY, "cpu_target": 60}, "container": "app", "cpu_request": 1.5},
        ),
        ({"containers": [{"resources": {"limits": {"cpu": 4}}}]}, {"cpu_request": 4.0}),
        ({"pod": {"disruptionBudget": True}}, {"budget": {"always_lead": True}}),
        # the queue outlives the lead's pod, a launcher doesn't
        *(
            ({"pod": {"disruptionBudget": True}, **kept}, {"budget": {"always_lead": False}})
            for kept in ({"state": {"claimName": "c"}}, {"state": {"capacity": "1Gi"}}, {"archive": {"path": "/a/b"}})
        ),
        (
            {
                "pod": {"disruptionBudget": True},
                "state": {"claimName": "c"},
                "containers": [{"command": "x", "launcher": True}],
            },
            {"budget": {"always_lead": True}},
        ),
    ],
    ids=str,
)
def test_the_settings_of_the_agent_follow_the_spec(
    cluster_of: Make, spec: dict[str, Any], expected: dict[str, Any]
) -> None:
    cluster = cluster_of({"size": 2, "maxSize": 8, **spec})
    text = rendered(cluster)["ConfigMap"]["data"]["agent.json"]
    assert json.loads(text) == AGENT | expected


def test_the_agent_knows_each_key_of_the_policy() -> None:
    assert {*render_settings.POLICY, "period"} == {field.name for field in fields(Policy)}


def test_objects_have_the_name_labels_and_annotations_of_the_document(cluster_of: Make) -> None:
    load = cluster_of()
    cluster = MiniClusterModel(load.name, load.namespace, {"a": "b"}, {"c": "d"}, load.spec, "")
    metadata = {"namespace": "ns", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    documents = rendered(cluster)
    assert documents["ConfigMap"]["metadata"] == {"name": "flux-sample-config", **metadata}
    assert documents["Secret"]["metadata"] == {"name": "flux-sample-curve", **metadata}


def test_no_secret_is_rendered_when_the_user_names_one(cluster_of: Make) -> None:
    assert list(rendered(cluster_of())) == ["ConfigMap", "Secret"]
    assert list(rendered(cluster_of({"flux": {"curveCertSecret": "mine"}}))) == ["ConfigMap"]


def test_the_certificate_is_in_the_secret_only(cluster_of: Make) -> None:
    documents = rendered(cluster_of({"logging": {"debug": True, "zeromq": True}, "flux": {"curveCert": CERTIFICATE}}))
    assert documents["Secret"]["stringData"] == {"curve.cert": CERTIFICATE}
    assert CERTIFICATE.split('"')[-2] not in yaml.safe_dump(documents["ConfigMap"])


# What the scripts read ---------------------------------------------------------------------------------------


def resource_set(rank: str = "0", hosts: str = "flux-sample-0", **children: str) -> str:
    """Return R of identical nodes."""
    lite = [{"rank": rank, "children": {"core": "own"} | children}]
    execution = {"R_lite": lite, "starttime": 0.0, "expiration": 0.0, "nodelist": [hosts]}
    return json.dumps({"version": 1, "execution": execution})


SETTINGS = {
    "mc_name": "flux-sample",
    "mc_namespace": "ns",
    "mc_size": "1",
    "mc_max_size": "1",
    "mc_view": "/opt/views/view",
    "mc_python_path": "",
    "mc_simple": "",
    "mc_needs_fluxion": "",
    "mc_queues": "",
    "mc_end_after": "",
    "mc_notify": "",
    "mc_notify_format": "json",
    "mc_preemption": "",
    "mc_affinity": "auto",
    "mc_cpus": "",
    "mc_gpu_variable": "",
    "mc_groups": "",
    "mc_joins": "",
    "mc_hosts_count": "1",
    "mc_port_hex": "1F72",
    "mc_resource_set": resource_set("0", "flux-sample-0"),
    "mc_archive": "",
    "mc_report_path": "",
    "mc_report_log": "",
    "mc_state_volume": "",
    "mc_check_seconds": "60",
    "mc_leave_seconds": "15",
    "mc_kill_seconds": "8",
    "mc_end_seconds": "7",
    "mc_on_stop": "cancel",
    "mc_work": "idle",
    "mc_script_has_interpreter": "",
    "mc_logs": "",
    "mc_quiet": "",
    "mc_log_file": "1",
    "mc_own_config": "",
    "mc_own_shm": "1",
    "mc_reserve": "",
    "mc_idle": "",
    "mc_records": "10000",
    "mc_wrap": "",
    "mc_strict": "1",
    "mc_timed": "",
    "mc_no_wait_socket": "",
    "mc_complete_workers": "",
}


WORDS = {"mc_start_words", "mc_submit_words", "mc_batch_words", "mc_prefix_words"}


def runner(**fields: Any) -> dict[str, Any]:
    return {"containers": [fields]}


@pytest.mark.parametrize("shell", EACH_SHELL)
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        (
            {"size": 3},
            {
                "mc_size": "3",
                "mc_max_size": "3",
                "mc_hosts_count": "3",
                "mc_resource_set": resource_set("0-2", "flux-sample-[0-2]"),
            },
        ),
        (
            {"size": 1, "maxSize": 9},
            {"mc_max_size": "9", "mc_hosts_count": "9", "mc_resource_set": resource_set("0-8", "flux-sample-[0-8]")},
        ),
        ({"flux": {"container": {"disable": True}}}, {"mc_view": ""}),
        ({"flux": {"container": {"pythonPath": "/py x"}}}, {"mc_python_path": "/py x"}),
        ({"flux": {"completeWorkers": True}}, {"mc_complete_workers": "1"}),
        ({"flux": {"scheduler": {"simple": True, "queuePolicy": "fcfs"}}}, {"mc_simple": "1"}),
        (
            {"flux": {"scheduler": {"queuePolicy": "hybrid", "matchPolicy": "low"}}},
            {"mc_needs_fluxion": "flux.scheduler.queuePolicy hybrid"},
        ),
        (
            {"flux": {"scheduler": {"matchPolicy": "policy=low node_centric=true"}}},
            {"mc_needs_fluxion": "flux.scheduler.matchPolicy policy=low node_centric=true"},
        ),
        ({"flux": {"affinity": "off"}}, {"mc_affinity": "off"}),
        *(
            (runner(resources=resources), {"mc_cpus": cpus, "mc_resource_set": resource_set(core=ids)})
            for resources, cpus, ids in (
                ({"limits": {"cpu": 4}}, "4", "0-3"),
                ({"limits": {"cpu": "4000m"}}, "4", "0-3"),
                # a pod has what it requests; more is everybody's
                ({"requests": {"cpu": 2}, "limits": {"cpu": 4}}, "2", "0-3"),
                ({"limits": {"cpu": "2500m"}}, "", "0-1"),
            )
        ),
        ({"flux": {"noWaitSocket": True}}, {"mc_no_wait_socket": "1"}),
        ({"flux": {"disableSocket": True}}, {"mc_no_wait_socket": "1"}),
        *(
            (
                {"archive": {"path": "/d", **archive}, "pod": {"terminationGracePeriodSeconds": grace}},
                {"mc_archive": "/d", "mc_leave_seconds": jobs, "mc_kill_seconds": kill, "mc_end_seconds": end},
            )
            for archive, grace, jobs, kill, end in (
                ({}, 1, "0", "0", "1"),
                ({}, 16, "4", "4", "8"),
                ({}, 30, "7", "8", "15"),
                ({}, 300, "277", "8", "15"),
                ({"dumpSeconds": 60}, 300, "232", "8", "60"),
                ({"dumpSeconds": 60}, 40, "10", "8", "22"),
            )
        ),
        ({"report": {"log": True}}, {"mc_report_log": "1"}),
        (
            {"report": {"path": "/d/jobs"}, **runner(volumes={"d": {"path": "/d", "hostPath": "/d"}})},
            {"mc_report_path": "/d/jobs"},
        ),
        (runner(commands={"nodeCheck": "true", "nodeCheckSeconds": 9}), {"mc_check_seconds": "9"}),
        *(
            ({"flux": {"memoryReserve": reserve}}, {"mc_reserve": taken})
            for reserve, taken in (("", ""), ("512Mi", "536870912"), (2e6, "2000000"), ("0.5Gi", "536870912"))
        ),
        ({"flux": {"idleJobs": {"for": 1800, "action": "cancel"}}}, {"mc_idle": "0.05 1800 cancel"}),
        ({"state": {"claimName": "queue"}}, {"mc_state_volume": "1"}),
        *(
            (
                {"pod": {"terminationGracePeriodSeconds": grace}},
                {"mc_leave_seconds": jobs, "mc_kill_seconds": kill, "mc_end_seconds": end},
            )
            for grace, jobs, kill, end in (
                (0, "0", "0", "0"),
                (1, "0", "1", "0"),
                (8, "4", "2", "2"),
                (16, "8", "4", "4"),
                (20, "10", "5", "5"),
                (30, "15", "8", "7"),
                (300, "285", "8", "7"),
            )
        ),
        ({"pod": {"onStop": "requeue"}}, {"mc_on_stop": "requeue"}),
        (
            {"logging": {"quiet": True, "strict": False, "timed": True}},
            {"mc_quiet": "1", "mc_strict": "", "mc_timed": "1"},
        ),
        ({"flux": {"logLevel": 6}}, {"mc_log_file": ""}),
        ({"logging": {"debug": True}}, {"mc_log_file": ""}),
        (runner(logs="/tmp/out"), {"mc_logs": "/tmp/out"}),
        (runner(command="x"), {"mc_work": "submit"}),
        (runner(command=["x"]), {"mc_work": "submit"}),
        (runner(command="x", launcher=True), {"mc_work": "launch"}),
        (runner(command="x", batch=True), {"mc_work": "batch"}),
        (runner(command="x", diagnostics=True), {"mc_work": "diagnose"}),
        (
            runner(commands={"script": "#!/usr/bin/env python3\n"}),
            {"mc_script_has_interpreter": "1", "mc_work": "submit"},
        ),
        (
            runner(commands={"script": "\ufeff#!/usr/bin/env python3\n"}),
            {"mc_script_has_interpreter": "1", "mc_work": "submit"},
        ),
        (runner(commands={"script": "echo #!\n"}), {"mc_work": "submit"}),
        (runner(cores=3), {"mc_resource_set": resource_set(core="0-2")}),
        (
            runner(resources={"limits": {"nvidia.com/gpu": 4}}),
            {"mc_resource_set": resource_set(gpu="0-3"), "mc_gpu_variable": "CUDA_VISIBLE_DEVICES"},
        ),
        (runner(gpus=2), {"mc_resource_set": resource_set(gpu="0-1")}),
        (
            runner(gpus=0, resources={"limits": {"amd.com/gpu": 4}}),
            {"mc_gpu_variable": "ROCR_VISIBLE_DEVICES"},
        ),
    ],
    ids=lambda x: str(x)[:50],
)
def test_the_settings_of_the_scripts_follow_the_spec(
    cluster_of: Make, shell: str, spec: dict[str, Any], expected: dict[str, str]
) -> None:
    values = settings_of(data(cluster_of(spec)), shell, list(SETTINGS))
    assert dict(zip(SETTINGS, values, strict=True)) == SETTINGS | expected


def test_each_setting_is_tested_and_used_by_a_script(cluster_of: Make) -> None:
    assigned = set(re.findall(r"^(mc_\w+)=", render_settings.shell(cluster_of()), re.MULTILINE))
    assert assigned == set(SETTINGS) | WORDS
    shell = "".join(shipped().values())
    assert [name for name in assigned if f"${name}" not in shell and f"${{{name}" not in shell] == []


@pytest.mark.parametrize("shell", EACH_SHELL)
@given(environment=st.dictionaries(NAMES, TEXTS, min_size=1, max_size=30))
@settings(max_examples=25)
def test_the_settings_export_the_environment_of_flux_unchanged(
    cluster_of: Make, shell: str, environment: dict[str, str]
) -> None:
    files = data(cluster_of({"flux": {"environment": environment}}))
    assert set(files) == {"broker.toml", "settings.sh"}
    assert settings_of(files, shell, list(environment)) == list(environment.values())
    exported = run_shell(shell, 'eval "$1"; export -p', files["settings.sh"], env={"PATH": "/nowhere"})
    assert all(re.search(rf"\b{name}=".encode(), exported) for name in environment)


@given(environment=st.dictionaries(NAMES, TEXTS, max_size=5))
def test_the_environment_of_flux_changes_no_other_setting(cluster_of: Make, environment: dict[str, str]) -> None:
    before, after = (render_settings.shell(cluster_of({"flux": {"environment": e}})) for e in ({}, environment))
    begin, end = before.split("then\n")
    assert after.startswith(f"{begin}then\n")
    assert after.endswith(end)
    assert len(shlex.split(after)) - len(shlex.split(before)) == 2 * len(environment)


@pytest.mark.parametrize("shell", EACH_SHELL)
def test_a_variable_that_a_job_sets_is_kept_when_the_settings_are_read_again(cluster_of: Make, shell: str) -> None:
    """The settings are read again by each flux that a job calls."""
    text = render_settings.shell(cluster_of({"flux": {"environment": {"T": "ours", "U": "ours"}}}))
    script = 'eval "$1"; echo "$T $U"; T=theirs; unset U; eval "$1"; echo "$T ${U-none}"; export -p'
    first, second, *exported = run_shell(shell, script, text, env={"PATH": "/nowhere"}).decode().splitlines()
    assert (first, second) == ("ours ours", "theirs none")
    assert [line for line in exported if re.search(r" T=.?theirs", line)]
    script = 'eval "$1"; printf "%s " "$T"'
    again = {"PATH": "/nowhere", "MINICLUSTER_ENVIRONMENT": "set", "T": "theirs"}
    assert run_shell(shell, script, text, env=again) == b"theirs "


@pytest.mark.parametrize("shell", EACH_SHELL)
@given(words=st.lists(TEXTS, min_size=1, max_size=20))
@settings(max_examples=25)
def test_a_command_that_is_a_list_is_an_exact_argv(cluster_of: Make, shell: str, words: list[str]) -> None:
    files = data(cluster_of(runner(command=words)))
    assert set(files) == {"broker.toml", "settings.sh", "command"}
    show = 'exec() { printf "%s\\0" "$@"; }\n'
    assert (
        run_shell(shell, show.replace("exec()", "show()") + files["command"].replace("exec ", "show ", 1))
        .decode()
        .split("\0")[:-1]
        == words
    )


#: In settings.sh, quoted if a shell might read it otherwise
JOB_NAME = re.compile(r"""(?P<quote>(?:'"'"')?)--job-name=[\w.+-]+(?P=quote)""")
FILES = {**postrender.SNIPPETS, "script": "script"}


@pytest.mark.parametrize("work", ["script", "command"])
@given(texts=st.tuples(*[TEXTS] * len(FILES)))
@settings(max_examples=25)
def test_a_command_or_snippet_of_the_user_becomes_a_file_unchanged(
    cluster_of: Make, work: str, texts: tuple[str, ...]
) -> None:
    given_texts = dict(zip(FILES, texts, strict=True))
    text = given_texts["script"]
    if work == "command":
        commands = {key: given_texts[key] for key in postrender.SNIPPETS}
        files = data(cluster_of(runner(command=text, commands=commands)))
        assert files.pop("command", "") == text
    else:
        files = data(cluster_of(runner(commands=given_texts)))
        assert files.pop("script", "") == text
    assert {key: files.pop(FILES[key], "") for key in postrender.SNIPPETS} == {
        k: given_texts[k] for k in postrender.SNIPPETS
    }
    if text:
        files["settings.sh"] = files["settings.sh"].replace("interpreter=1", "interpreter=''")
        files["settings.sh"] = files["settings.sh"].replace("mc_work=submit", "mc_work=idle")
        # the job has the name of its program
        files["settings.sh"] = JOB_NAME.sub("--job-name=flux-sample", files["settings.sh"])
    assert files == data(cluster_of())


@pytest.mark.parametrize("text", NASTY)
def test_a_text_survives_unchanged_in_every_place_at_once(cluster_of: Make, text: str) -> None:
    commands = dict.fromkeys(postrender.SNIPPETS, text)
    files = data(cluster_of(runner(command=text, commands=commands) | {"flux": {"environment": {"T": text}}}))
    assert [files.get(FILES[key], "") for key in commands] == [text] * len(commands)
    assert files.get("command", "") == text
    for shell in INSTALLED_SHELLS:
        assert settings_of(files, shell, ["T"]) == [text]


@given(
    spec=st.fixed_dictionaries(
        {
            "submitCommand": st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1),
            "optionFlags": st.text(st.characters(min_codepoint=32, max_codepoint=126)),
        }
    ),
    prefix=st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=["Cc"])),
)
def test_the_submit_command_is_split_like_a_shell_or_refused(
    cluster_of: Make, spec: dict[str, str], prefix: str
) -> None:
    try:
        words = work.submit(cluster_of({"flux": spec} | runner(commands={"prefix": prefix})))
    except SpecError as error:
        assert re.search(r"(No closing quotation|No escaped character); close the quote$", str(error))
        return
    split = [shlex.split(text) for text in (prefix, spec["submitCommand"], spec["optionFlags"])]
    watch = [] if split[1][-1:] == ["run"] else ["--quiet", "--watch"]
    assert words == [*split[0], *split[1], "-N", "1", "-n", "1", *split[2], *watch]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"size": 4}, "flux run -n 1"),
        ({"size": 1}, "flux run -N 1 -n 1"),
        ({"size": 4, "tasks": 0}, "flux run -N 4"),
        ({"size": 4, "tasks": 3}, "flux run -n 3"),
        ({"size": 4, "tasks": 4}, "flux run -N 4 -n 4"),
        ({"size": 4, "tasks": 5}, "flux run -N 4 -n 5"),
        ({"size": 2, "maxSize": 8, "tasks": 0}, "flux run -N 2"),
        ({"size": 4, "logging": {"debug": True}}, "flux run -n 1 -vvv"),
        *(
            # so that a lead that finds its queue again, or whose pods leave, knows it
            ({"size": 4, **keeps}, "flux run -n 1 --setattr=user.minicluster.work=1")
            for keeps in (
                {"archive": {"path": "/a/b"}},
                {"state": {"claimName": "queue"}},
                {"pod": {"onStop": "requeue"}},
            )
        ),
        ({"size": 4, "flux": {"submitCommand": "flux submit -q batch"}}, "flux submit -q batch -n 1 --quiet --watch"),
        # it does not show the output by itself
        ({"size": 4, "flux": {"submitCommand": "flux submit"}}, "flux submit -n 1 --quiet --watch"),
        (
            {
                "size": 4,
                "flux": {"submitCommand": "flux submit", "optionFlags": "--cc=1"},
                "logging": {"debug": True},
            },
            "flux submit -n 1 --cc=1 -vvv --watch",
        ),
        ({"size": 4, "flux": {"optionFlags": "-o 'a b' -x"}}, "flux run -n 1 -o 'a b' -x"),
        (
            {"size": 4} | runner(commands={"prefix": "time -p"}),
            "time -p flux run -n 1",
        ),
    ],
)
def test_the_submit_command_follows_the_spec(cluster_of: Make, spec: dict[str, Any], expected: str) -> None:
    cluster = cluster_of(spec)
    words = work.submit(cluster)
    # test_work_name.py has the names
    assert shlex.join(word for word in words if not word.startswith("--job-name=")) == expected
    for shell in INSTALLED_SHELLS:
        assert words_of(render_settings.shell(cluster), shell, "mc_submit_words") == words


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"flux": {"optionFlags": "-o 'a"}},
            'flux.optionFlags is "-o \'a": No closing quotation; close the quote',
        ),
        (
            {"flux": {"submitCommand": 'flux "run'}},
            "flux.submitCommand is 'flux \"run': No closing quotation; close the quote",
        ),
        (
            runner(commands={"prefix": "'"}),
            'commands.prefix is "\'": No closing quotation; close the quote',
        ),
    ],
)
def test_an_open_quote_in_the_submit_command_is_refused(cluster_of: Make, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        work.submit(cluster_of(spec))
    assert str(caught.value) == message


# The ConfigMap ----------------------------------------------------------------------------------------------


def test_texts_that_do_not_fit_into_a_configmap_are_refused(cluster_of: Make) -> None:
    cluster = cluster_of(runner(commands={"script": "é" * 524_288}))
    with pytest.raises(SpecError) as caught:
        rendered(cluster)
    assert re.fullmatch(
        r"MiniCluster flux-sample: its texts are 1\d{6} bytes, a ConfigMap holds 1048576: mount them",
        str(caught.value),
    )
