"""The commands in messages: each can be pasted as it stands, in the namespace and the context of the command line."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from minicluster import commands
from minicluster.commands import group
from minicluster.console import streams
from minicluster.console.messages import ELSEWHERE, PASTED_COMMAND, Where, complete, completed
from minicluster.console.terminal import Progress, reworded
from support import PACKAGE, front_door

from tools.budget import nodes, sources

WHERE = Where("lab", "a b")
#: The module with commands that stand alone
WHY = "status/why.py"
#: What stands for a command as a noun, and is no line to paste
NOUNS = {
    "minicluster keygen",  # needs a name and a file, which only the user knows
    "minicluster template",
    *("minicluster create", "minicluster copy --all"),  # need names, too
    "minicluster template --output-dir",
    "helm template",
    "helm uninstall",
    "kubectl scale",
    "minicluster burst hosts",  # the same
    "minicluster flux",  # in the note of a job that was cancelled
    "helm upgrade",  # in a help
}
#: What is computed, as it is then
COMPUTED = {
    "minicluster scale x": "minicluster scale x 2",
    "minicluster scale x xauto": "minicluster scale x auto",
    "minicluster scale x x=SIZE": "minicluster scale x x=2",
    "minicluster x": "minicluster output x x",
}
#: Words of kubectl and Helm that may be without a name: they tell of all
OF_ALL = {("kubectl", "get"), ("kubectl", "describe"), ("helm", "list")}


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings, with an x for what is computed."""
    # a docstring is before its text, and so is what a text is a part of
    known: set[ast.AST] = set()
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(node.body[0], ast.Expr):
            known.add(node.body[0].value)
        elif isinstance(node, ast.JoinedStr):
            known |= {*node.values}
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "x" for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in known:
            yield node.value


def found() -> Iterator[tuple[str, str]]:
    """Yield the file and the command of each message."""
    for file in sources():
        name = str(file.relative_to(PACKAGE))
        for text in texts(file):
            yield from ((name, match[1]) for match in PASTED_COMMAND.finditer(text))
            if name == WHY and text.startswith("minicluster ") and not text.endswith("--"):
                yield name, text


def parses(command: str) -> bool:
    """Return whether a command is whole."""
    # what a person fills in
    words = [re.sub(r"^[A-Z]+$|^x$", "2", word) for word in shlex.split(command)]
    if words[0] != "minicluster":
        return len(words) > 2 and (tuple(words[:2]) in OF_ALL or len([w for w in words if not w.startswith("-")]) > 2)
    try:
        name, one, rest = group.resolve_command(click.Context(group), words[1:])
        while isinstance(one, click.Group):
            name, one, rest = one.resolve_command(click.Context(one), rest)
        one.make_context(name, list(rest))
    except click.ClickException:
        return False
    return True


def is_complete(command: str) -> bool:
    """Return whether a command is whole, and has the namespace and the context, if it takes them."""
    tool, word, *_ = command.split()
    is_of_cluster = tool != "helm" and word == "get" and "nodes" in command
    has_namespace = is_of_cluster or "-A" in command or "-n" in shlex.split(command)
    return parses(command) and (word in ELSEWHERE[tool] or ("a b" in shlex.split(command) and has_namespace))


# one worker parses the sources
@pytest.mark.xdist_group("sources")
def test_each_command_in_a_message_can_be_pasted() -> None:
    commands = {(file, COMPUTED.get(command, command)) for file, command in found() if command not in NOUNS}
    assert len(commands) > 30
    assert [one for one in commands if not (parses(one[1]) and is_complete(completed(one[1], WHERE)))] == []


@pytest.mark.parametrize(
    ("command", "whole"),
    [
        ("minicluster status x", "minicluster status x -n lab --context 'a b'"),
        ("minicluster flux x -- a -n b", "minicluster flux x -n lab --context 'a b' -- a -n b"),
        ("minicluster logs x -n other", "minicluster logs x -n other --context 'a b'"),
        ("minicluster list -A", "minicluster list -A --context 'a b'"),
        ("minicluster plugin install", "minicluster plugin install"),
        ("kubectl get nodes", "kubectl get nodes --context 'a b'"),
        ("kubectl patch job x -p '{\"a b\":1}'", "kubectl patch job x -p '{\"a b\":1}' -n lab --context 'a b'"),
        ("helm uninstall x", "helm uninstall x -n lab --kube-context 'a b'"),
    ],
)
def test_a_command_gets_what_it_lacks(command: str, whole: str) -> None:
    assert completed(command, WHERE) == whole
    assert completed(whole, WHERE) == whole
    assert complete(f"do `{command}` or `{command}`.", WHERE) == f"do `{whole}` or `{whole}`."
    assert completed(command, Where()) == command


def test_a_plugin_of_kubectl_names_itself() -> None:
    assert completed("minicluster status x", Where(), "kubectl minicluster") == "kubectl minicluster status x"
    assert completed("kubectl get pods", Where(), "kubectl minicluster") == "kubectl get pods"


def test_other_words_keep_what_a_line_is() -> None:
    step = Progress("a", "phase", is_quiet=True)
    other = reworded(step, "b")
    assert (other, type(other), vars(other)) == ("b", Progress, vars(step))
    assert reworded("a", "b") == "b"


def test_what_is_elsewhere_has_no_namespace() -> None:
    # those of Slurm have its short options
    for name in commands.MODULES.keys() - set(commands.SECTIONS["Slurm's commands"]):
        command = group.get_command(click.Context(group), name)
        options = {option for param in command.params for option in param.opts} if command else set()
        assert ({"--namespace", "--context"} <= options) is (name not in ELSEWHERE["minicluster"]), name


def test_an_error_names_the_namespace_and_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = CliRunner().invoke(front_door, ["status", "demo", "-n", "lab", "--context", "a b"])
    assert done.exit_code == 1
    assert streams.pasteable("see `minicluster status demo`") == "see `minicluster status demo -n lab --context 'a b'`"
    CliRunner().invoke(front_door, ["status", "demo"])
    assert streams.pasteable("see `minicluster status demo`") == "see `minicluster status demo`"
