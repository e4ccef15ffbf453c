"""``minicluster sbatch`` and the others: where, with which words, and with which script the pods' commands run."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_kubectl import Kubectl
from minicluster.commands.flux import SlurmWords, read
from minicluster.errors import StateError
from minicluster.exec.slurm import F58, number

#: Prints its variables of ours, its words and its input
SHOW = """#!/bin/sh
echo "${MINICLUSTER_SLURM_SCRIPT:-} ${MINICLUSTER_SLURM_CLIENT%%-*}"
printf '<%s>' "$@"
cat
exit 3
"""


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    kubectl = Kubectl(tmp_path)
    kubectl.flux("exit 0")
    (kubectl.folder / "home" / "slurm").mkdir()
    return kubectl


def add(kubectl: Kubectl, name: str, text: str = SHOW) -> None:
    path = kubectl.folder / "home" / "slurm" / name
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("command", "words", "where", "theirs", "script"),
    [
        ("sbatch", ["-N2", "-Mdemo", "a b", "-N", "3"], ("demo", "", ""), ["--nodes=2", "--", "a b", "-N", "3"], "a b"),
        ("sbatch", ["--wrap", "echo $HOME", "--namespace=x"], ("", "x", ""), ["--wrap=echo $HOME"], ""),
        ("sbatch", ["--parsable", "--context", "c"], ("", "", "c"), ["--parsable"], ""),
        ("srun", ["-n4", "-l", "hostname", "-f"], ("", "", ""), ["--ntasks=4", "--label", "--", "hostname", "-f"], ""),
        ("squeue", ["-h", "-M", "a", "-o", "%i %T", "-j", "1"], ("a", "", ""), ["--noheader", "--format=%i %T", "--jobs", "1"], ""),  # noqa: E501
        ("scontrol", ["show", "job", "12"], ("", "", ""), ["show", "job", "12"], ""),
    ],
)  # fmt: skip
def test_words_that_say_where_are_ours_and_the_others_are_slurms(
    command: str, words: list[str], where: tuple[str, str, str], theirs: list[str], script: str
) -> None:
    assert read(command, words) == SlurmWords(*where, [command, *theirs], script)


def test_an_option_that_slurm_has_not_is_refused_here() -> None:
    with pytest.raises(StateError, match=r"^sbatch: error: unrecognized option '--nodez'$"):
        read("sbatch", ["--nodez=2", "job.sh"])


def test_a_folder_of_ours_goes_along(kubectl: Kubectl, tmp_path: Path) -> None:
    add(kubectl, "sbatch", """printf '<%s>' "$@"\n""")
    kubectl.flux('[ "$1" != python ] || { shift; exec python3 "$@"; }')
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/a").write_text("a")
    done = kubectl.run("sbatch", "-M", "mini", "--upload", str(tmp_path / "mine"), "-N2", "--wrap", "./a")
    place = next((tmp_path / "home/uploads").glob("*/mine"))
    assert (done.code, done.out) == (0, f"<--chdir={place}><--nodes=2><--wrap=./a>")
    assert (place / "a").read_text() == "a"
    done = kubectl.run("srun", "--upload", "none", "true")
    assert (done.code, done.err) == (2, "minicluster: --upload: none is no folder here: give one\n")
    done = kubectl.run("squeue", "-M", "mini", "--upload", ".")
    assert (done.code, done.err) == (1, "minicluster: squeue: error: unrecognized option '--upload'\n")


def test_a_script_of_ours_goes_along(kubectl: Kubectl, tmp_path: Path) -> None:
    add(kubectl, "sbatch")
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH -N2\necho `id` é\n")
    done = kubectl.run("sbatch", "-M", "mini", "-n2", str(tmp_path / "job.sh"), "$A")
    words = f"<--ntasks=2><--><{tmp_path}/job.sh><$A>"
    assert (done.code, done.out, done.err) == (3, f"1 key\n{words}#!/bin/sh\n#SBATCH -N2\necho `id` é\n", "")


def test_a_script_that_is_not_here_is_named(kubectl: Kubectl, tmp_path: Path) -> None:
    done = kubectl.run("sbatch", "-M", "mini", f"{tmp_path}/none.sh")
    why = f"No such file or directory in {Path.cwd()}; it is read here, not in the pods"
    assert (done.code, done.out) == (1, "")
    assert done.err == f"minicluster: sbatch: error: Unable to open file {tmp_path}/none.sh: {why}\n"


def test_other_commands_have_our_streams_and_exit_code(kubectl: Kubectl) -> None:
    add(kubectl, "squeue")
    done = kubectl.run("squeue", "-M", "mini", "-t", "R", stdin="in")
    assert (done.code, done.out, done.err) == (3, " key\n<--states=R>in", "")


def test_pods_of_an_older_chart_are_named(kubectl: Kubectl) -> None:
    done = kubectl.run("sinfo", "-M", "mini")
    way = "the pods have no Slurm commands, as an older chart made them: minicluster replace makes them anew"
    assert (done.code, done.out, done.err) == (127, "", f"sinfo: {way}\n")


@given(st.integers(1, 2**63 - 1))
def test_an_id_of_flux_has_its_number(value: int) -> None:
    digits, left = "", value
    while left:
        left, digit = divmod(left, len(F58))
        digits = F58[digit] + digits
    assert number(f"f{digits}") == value
