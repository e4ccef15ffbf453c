"""The user's snippets: when they run, in which environment, and what their failure does."""

import pytest
from broker_clusters import Make

QUIET = {"logging": {"quiet": True}}
#: Each snippet prints its name, and the variable that the one before it exported.
ALL = {
    "init": "echo init; export A=init",
    "pre": "echo pre $A; export A=$A,pre",
    "brokerPre": "echo brokerPre $A; export A=$A,brokerPre",
    "workerPre": "echo workerPre $A; export A=$A,workerPre",
    "post": "echo post $A $(cat /mnt/flux/minicluster/command)",
}


def own_lines(log: str) -> list[str]:
    """Return the lines of a log without those of Flux and of the entrypoint."""
    return [line for line in log.splitlines() if not line.startswith(("<", "minicluster: "))]


def test_snippets_run_in_order_and_pass_on_their_exports(make: Make) -> None:
    cluster = make({"size": 2}, {"command": "echo job $A", "commands": ALL})
    assert cluster.run() == [0, 0]
    first = ["init", "pre init"]
    lead = [*first, "brokerPre init,pre", "job init,pre,brokerPre", "post init,pre,brokerPre echo job $A"]
    assert own_lines(cluster.lead.log) == lead
    assert own_lines(cluster.pods[1].log) == [*first, "workerPre init,pre", "post init,pre,workerPre echo job $A"]


def test_an_export_of_a_snippet_or_job_overrides_the_environment_of_the_values(make: Make) -> None:
    values = {"tasks": 1, **QUIET, "flux": {"environment": {"A": "0"}}}
    commands = {"init": "A=$A,init"}
    cluster = make(values, {"command": "echo $A; A=$A,job flux run sh -c 'echo $A'", "commands": commands})
    assert cluster.run() == [0]
    assert cluster.lead.log == "0,init\n0,init,job\n"


def test_quiet_logging_hides_the_output_of_snippets(make: Make) -> None:
    cluster = make({"size": 2, **QUIET}, {"command": "echo job $A", "commands": ALL})
    assert cluster.run() == [0, 0]
    assert (cluster.lead.log, cluster.pods[1].log) == ("job init,pre,brokerPre\n", "")


FAILURES = {
    "exit": ("exit 9", 9),
    "command": ("(exit 9)\necho not here", 9),
    "pipe": ("(exit 9) | cat", 9),
    "unset": ("echo $unset_variable", 1),
    "retry": ("exit 85", 85),
    "nested": ("f() { (exit 9); echo not here; }\nf", 9),
}


@pytest.mark.parametrize(("text", "code"), FAILURES.values(), ids=FAILURES)
def test_a_failing_snippet_fails_the_pod(make: Make, text: str, code: int) -> None:
    cluster = make({}, {"command": "echo job", "commands": {"init": text}})
    assert cluster.run() == [1 if code == 85 else code]
    assert "not here" not in cluster.lead.log
    assert "job" not in own_lines(cluster.lead.log)
    assert f"minicluster: init.sh failed with exit code {code}\n" in cluster.lead.log


@pytest.mark.parametrize(("key", "file"), [("pre", "pre.sh"), ("brokerPre", "broker-pre.sh"), ("post", "post.sh")])
def test_a_failing_snippet_is_logged_in_one_line_only(make: Make, key: str, file: str) -> None:
    cluster = make(QUIET, {"command": "echo job", "commands": {key: "exit 9"}})
    assert cluster.run() == [9]
    assert file not in cluster.lead.log.replace(f"minicluster: {file} failed with exit code 9\n", "")


@pytest.mark.parametrize(("key", "file"), [("pre", "pre.sh"), ("brokerPre", "broker-pre.sh"), ("post", "post.sh")])
def test_the_log_names_the_snippet_that_failed(make: Make, key: str, file: str) -> None:
    cluster = make(QUIET, {"command": "echo job", "commands": {key: "exit 9"}})
    assert cluster.run() == [9]
    assert cluster.lead.log == ("job\n" if key == "post" else "") + f"minicluster: {file} failed with exit code 9\n"


def test_a_failing_worker_pre_snippet_fails_the_worker(make: Make) -> None:
    cluster = make({"size": 2}, {"command": "echo job", "commands": {"workerPre": "exit 9"}})
    cluster.start([1])
    assert cluster.wait() == [9]
    assert cluster.pods[1].log.endswith("minicluster: worker-pre.sh failed with exit code 9\n")


def test_a_post_snippet_that_succeeds_does_not_hide_the_failure_of_the_job(make: Make) -> None:
    cluster = make(QUIET, {"command": "exit 5", "commands": {"post": "exit 0"}})
    assert cluster.run() == [5]


def test_a_syntax_error_in_a_snippet_fails_the_pod(make: Make) -> None:
    cluster = make({}, {"command": "echo job", "commands": {"init": "if then\n"}})
    assert cluster.run() != [0]
    assert "init.sh failed with exit code" in cluster.lead.log


def test_a_snippet_goes_on_after_an_error_when_strict_is_false(make: Make) -> None:
    commands = {"init": "false\necho $unset_variable\ncd /nonexistent\nexport A=1", "post": "false"}
    cluster = make({"logging": {"quiet": True, "strict": False}}, {"command": "echo job $A", "commands": commands})
    assert cluster.run() == [0]
    assert cluster.lead.log == "job 1\n"


def test_a_failing_job_fails_the_lead_when_strict_is_false(make: Make) -> None:
    cluster = make({"logging": {"quiet": True, "strict": False}}, {"command": "exit 5", "commands": {"post": "true"}})
    assert cluster.run() == [5]


def test_shell_settings_of_a_snippet_do_not_disturb_the_entrypoint(make: Make) -> None:
    commands = {"init": "set -x\nset -- a b\ncd /\numask 077\ncode=7 index=3 i=1\nexit() { :; }\nunset -f exit"}
    cluster = make({"size": 2, **QUIET}, {"command": "echo job", "commands": commands})
    assert cluster.run() == [0, 0]


def test_a_snippet_may_have_quotes_here_documents_and_no_last_newline(make: Make) -> None:
    text = (
        "A=\"'\"\nB='\"'\nC=`echo c`\ncat <<'END' >/tmp/x\n$HOME `id` \\ é\nEND\nexport A B C\n# no newline at the end"
    )
    cluster = make(QUIET, {"command": 'echo "$A$B$C"; cat /tmp/x', "commands": {"init": text}})
    assert cluster.run() == [0]
    assert cluster.lead.log == "'\"c\n$HOME `id` \\ é\n"
