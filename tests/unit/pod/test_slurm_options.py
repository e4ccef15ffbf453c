"""Command lines, variables and `#SBATCH` lines of Slurm's commands are read as Slurm reads them."""

import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_options import DENIED, EXACT, NEAR, OTHER_NAMES, PASSED, SUBMIT_OPTIONS, SUBMITTERS, options_of
from slurm_parse import SlurmError, check_script, read_submission, read_words, split_line
from slurm_tables import OPTIONS_OF

FIRST = "#!/bin/bash\n"


def values(text: str, command: str = "sbatch", script: str = "", **environment: str) -> dict[str, str]:
    return dict(read_submission(command, shlex.split(text), environment, script and FIRST + script, "job.sh").values)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("-N2 -n 4", {"nodes": "2", "ntasks": "4"}),
        ("--nodes=2 --ntasks 4", {"nodes": "2", "ntasks": "4"}),
        ("-HQ -J name", {"hold": "", "quiet": "", "job-name": "name"}),
        ("--exclusive --exclusive=user", {"exclusive": "user"}),
        ("--job=name", {"job-name": "name"}),
        ("--tasks-per-node=2 --workdir=/tmp", {"ntasks-per-node": "2", "chdir": "/tmp"}),
        ("--export=A=1,B --comment ''", {"export": "A=1,B", "comment": ""}),
        ("--requeue --no-requeue", {"no-requeue": ""}),
        ("--mem=1G --mem-per-cpu=2G", {"mem-per-cpu": "2G"}),
        ("-q standby", {"qos": "standby"}),
        ("--qos=high", {}),
    ],
)
def test_options_have_their_long_short_and_shortened_names(text: str, found: dict[str, str]) -> None:
    assert values(text) == found


def test_the_words_behind_the_script_are_its_own() -> None:
    given = read_submission("sbatch", ["-n", "2", "job.sh", "-n", "3", "--", "x"], {})
    assert (given.values, given.words) == ({"ntasks": "2"}, ["job.sh", "-n", "3", "--", "x"])
    assert read_submission("srun", ["--", "-n"], {}).words == ["-n"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("--foo", "unrecognized option '--foo'"),
        ("-@", "invalid option -- '@'"),
        ("-n", "option requires an argument -- 'n'"),
        ("--ntasks", "option '--ntasks' requires an argument"),
        ("--hold=1", "option '--hold' doesn't allow an argument"),
        ("--mail=2", "option '--mail' is ambiguous; possibilities: '--mail-type' '--mail-user'"),
        ("-L a", "--licenses: not in a MiniCluster: nobody counts licenses here"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_by_its_name(text: str, problem: str) -> None:
    with pytest.raises(SlurmError) as refused:
        values(text)
    assert str(refused.value) == problem


def test_lines_of_the_script_count_up_to_its_first_command() -> None:
    script = (
        "#SBATCH -J first # why\n\n# a comment\n##SBATCH -n 9\n # SBATCH -n 9\n#SBATCH\t--ntasks=2 -N 1\n"
        "#SBATCH--mem=1G\n#SBATCH --comment='a # b'\nset -e\n#SBATCH -n 9\n"
    )
    expected = {"job-name": "first", "ntasks": "2", "nodes": "1", "mem": "1G", "comment": "a # b"}
    assert values("", script=script) == expected


def test_words_count_before_variables_and_these_before_the_script() -> None:
    script = "#SBATCH -p script -J script -t 1\n"
    environment = {"SBATCH_PARTITION": "variable", "SBATCH_JOB_NAME": "variable", "SLURM_PARTITION": "other"}
    expected = {"partition": "variable", "job-name": "words", "time": "1", "hold": ""}
    assert values("-J words -H", script=script, **environment) == expected
    assert values("", "srun", SLURM_LABELIO="1", SLURM_UNBUFFEREDIO="0", SLURM_JOB_ID="5") == {"label": ""}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("#SBATCH -N 2 3", "job.sh, line 2: Invalid argument: 3"),
        ("#SBATCH --foo", "job.sh, line 2: unrecognized option '--foo'"),
        ("#SBATCH --comment='a", "job.sh, line 2: a quote ' has no end"),
        ("#SBATCH hetjob", "job.sh, line 2: a job has nodes of one kind: submit a job for each part"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(line: str, problem: str) -> None:
    with pytest.raises(SlurmError) as refused:
        values("", script=line + "\n")
    assert str(refused.value) == problem


def test_what_has_to_do_with_accounts_mail_or_speed_is_passed_over_with_a_line() -> None:
    given = read_submission("sbatch", ["-A", "a", "--mail-type=ALL", "--hint=nomultithread"], {})
    assert (given.values, given.passed) == (
        {},
        [
            "--account is passed over: a MiniCluster has one user, no accounts",
            "--mail-type is passed over: nobody sends mail here",
            "--hint is passed over: a hint about speed",
        ],
    )


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\0"))))
def test_any_words_survive_the_quotes_of_a_line(words: list[str]) -> None:
    assert split_line(" " + shlex.join(words)) == words


@given(st.lists(st.text()), st.text())
def test_any_words_and_any_script_are_taken_or_refused(words: list[str], script: str) -> None:
    for command in SUBMITTERS:
        try:
            read_submission(command, words, {}, script)
        except SlurmError as error:
            assert re.match(r"option|unrecognized|invalid option|--\w|script, line ", str(error))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "Batch script is empty!"),
        (b"echo\n", "This does not look like a batch script.  The first line must start with #!"),
        (b"#!/bin/sh\r\necho\r\n", r"Batch script contains DOS line breaks (\r\n)"),
        (b"#!/bin/sh\n\0", "The SLURM batch script contains a NULL character"),
        (b"#!/bin/sh\n\xff", "the script is no UTF-8 text at byte 10"),
        (b"#!/bin/sh\n" + b"#" * (4 << 20), "the script has 4194314 bytes"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value[:20],
)
def test_a_script_that_slurm_refuses_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(SlurmError) as refused:
        check_script(text)
    assert str(refused.value).startswith(problem)


def test_each_option_has_one_meaning_in_each_command() -> None:
    for command in SUBMITTERS:
        options = options_of(command)
        assert len({option.name for option in options}) == len(options) > 80
        letters = [option.short for option in options if option.short]
        assert len(set(letters)) == len(letters)
    assert {option.kind for option in SUBMIT_OPTIONS} == {EXACT, NEAR, PASSED, DENIED}
    assert set(OTHER_NAMES.values()) <= {option.name for option in SUBMIT_OPTIONS}


def test_options_of_the_other_commands_may_stand_behind_their_words() -> None:
    assert read_words(OPTIONS_OF["scancel"], ["5", "-s", "USR1", "6"]) == ({"signal": "USR1"}, ["5", "6"])
    # submitit's way to ask for several
    assert read_words(OPTIONS_OF["sacct"], shlex.split("-o a -j 1 -o b -j 2,3"), ["jobs"])[0] == {
        "format": "b",
        "jobs": "1,2,3",
    }
    assert read_words(OPTIONS_OF["squeue"], ["-h", "-o%i", "-j", "5"]) == (
        {"noheader": "", "format": "%i", "jobs": ""},
        ["5"],
    )
    with pytest.raises(SlurmError, match=r"^--iterate: not in a MiniCluster: use `watch squeue`$"):
        read_words(OPTIONS_OF["squeue"], ["-i", "5"])
