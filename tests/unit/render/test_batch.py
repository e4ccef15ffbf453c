"""The lines of a batch."""

import shlex
import subprocess
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minicluster.errors import SpecError
from minicluster.render import work
from minicluster.render.work import incomplete
from support import INSTALLED_SHELLS

TOKENS = [
    *(
        "|",
        "||",
        "&",
        "&&",
        "|&",
        ";",
        ";;",
        ";&",
        "<",
        ">",
        ">>",
        "<>",
        ">|",
        ">&",
        "&>",
        "<&",
        "<<",
        "(",
        ")",
        "{",
        "}",
    ),
    *(
        "#",
        "a",
        "b=",
        "'",
        '"',
        "\\",
        "\\(",
        "'(|'",
        '"(|"',
        "$(",
        "${",
        "$",
        "`",
        "[[",
        "]]",
        "[",
        "!",
        "=",
        "2",
        "*",
        "?",
    ),
    *(
        "case",
        "esac",
        "in",
        "if",
        "then",
        "fi",
        "do",
        "done",
        "for",
        "while",
        "$((",
        "))",
        "$'",
        "@",
        "+",
        "f()",
        "-n2",
        "~",
    ),
]
LINES = st.lists(st.sampled_from(TOKENS + [" "] * 20), max_size=9).map("".join)


def is_read(shell: str, line: str) -> bool:
    """Whether a shell can read a line after a command."""
    words = ["busybox", "sh"] if shell == "busybox" else [shell]
    done = subprocess.run([*words, "-n", "-c", f"flux submit {line}\n"], capture_output=True, timeout=60, check=False)
    return done.returncode == 0 and b"yntax error" not in done.stderr


@given(LINES)
def test_no_line_is_refused_that_a_shell_can_read(line: str) -> None:
    if incomplete(line):
        assert [shell for shell in INSTALLED_SHELLS if is_read(shell, line)] == []


@given(st.lists(st.text(alphabet="ab |&;<>()#'\"\\$`{}*?!=\u2028é", min_size=1)))
def test_no_quoted_word_is_refused(words: list[str]) -> None:
    assert incomplete(shlex.join(["echo", *words])) == ""


@pytest.mark.parametrize(
    "line",
    [
        *("echo a; echo b", "a && b", "a || b", "a | b", "a &", "a ;", "a > f", "a 2>&1", "-n 2 a", 'echo "a |"'),
        *("echo '('", r"echo \(", r"echo \|", "a # (", "a #|", "echo $(a)", "a; (b)", "a | (b; c)"),
        *("echo $((1 + 2))", "a; f() { b; }; f", "a; case x in y) b ;; esac", "echo ${a#(}", "a <<< b", "[ a ]"),
        "sh -c 'echo a | (cat)'",
    ],
)
def test_a_line_that_a_shell_can_read_is_not_refused(line: str) -> None:
    assert is_read("bash", line)
    assert incomplete(line) == ""


REFUSED = {
    "echo first |": "it ends with |",
    "a | # b": "it ends with |",
    "a ||": "it ends with ||",
    "a &&": "it ends with &&",
    "a |&": "it ends with |&",
    "a >": "it ends with >",
    "a >>": "it ends with >>",
    "a 2>&": "it ends with >&",
    "a ;;": "it ends with ;;",
    "echo a (": "it has ( or ) without quotes",
    "echo a (b)": "it has ( or ) without quotes",
    "echo a)": "it has ( or ) without quotes",
    "f(x)": "it has ( or ) without quotes",
    "a; (b": "it has ( or ) without quotes",
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_line_that_is_no_command_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(SpecError) as caught:
        work.batch_script(f"echo zero\n\n  {line}\t\necho next\n")
    assert str(caught.value) == (
        f"line 2 of the batch is {line!r}: {REFUSED[line]}, so it is not a command; quote that, or use batchRaw"
    )


def test_a_line_ends_at_a_line_feed_alone() -> None:
    for mark, end in product("\u2028\u2029\x85\x0c\x1c", ("", "b")):
        script = work.batch_script(f"echo a{mark}{end}\necho c")
        assert script.count("flux submit") == 2
        assert f"echo a{mark}{end}'" in script
