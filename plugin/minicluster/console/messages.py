"""Numbers and commands in messages. A pasted command names the namespace and the context that its message is about.

Messages are made where nobody knows these two, some of them on the lead. So a command stands between backticks, and it
is completed where a message gets to a person: here alone.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

#: A command between backticks
PASTED_COMMAND = re.compile(r"`((?:minicluster|kubectl|helm) [^`]*)`")
#: The options of each program for a namespace and a context
PLACE_OPTIONS = {"minicluster": ("-n", "--context"), "kubectl": ("-n", "--context"), "helm": ("-n", "--kube-context")}
#: What is not about a namespace of a cluster
ELSEWHERE = {
    "minicluster": ("template", "render", "argocd", "keygen", "convert", "config", "plugin", "chart", "burst"),
    "kubectl": (),
    "helm": ("template", "plugin"),
}
#: What is about the whole cluster, by its words
OF_ALL_NAMESPACES = (("minicluster", "list", "-A"), ("kubectl", "get", "nodes"))


class Where(NamedTuple):
    """What a command line asks about; "" is the current one of the kubeconfig, which the pasted command has, too."""

    namespace: str = ""
    context: str = ""


def complete(text: str, where: Where, program: str = "minicluster") -> str:
    """Return a text whose commands are complete; ``program`` is how a person calls ours."""
    return PASTED_COMMAND.sub(lambda match: f"`{completed(match[1], where, program)}`", text)


def complete_all(text: Any, where: Where, program: str = "minicluster") -> Any:
    """Return a document whose texts are complete."""
    if isinstance(text, dict):
        return {key: complete_all(value, where, program) for key, value in text.items()}
    if isinstance(text, list):
        return [complete_all(value, where, program) for value in text]
    return complete(text, where, program) if isinstance(text, str) else text


def completed(command: str, where: Where, program: str = "minicluster") -> str:
    """Return a command that is complete.

    >>> completed("minicluster flux demo -- resource list", Where("lab", "a b"))
    "minicluster flux demo -n lab --context 'a b' -- resource list"
    """
    import shlex  # noqa: PLC0415 - a post-render has no use of it

    own, dashes, rest = command.partition(" -- ")
    words = own.split()
    tool = words[0]
    if words[1] not in ELSEWHERE[tool] and "--help" not in words:
        for option, value in zip(PLACE_OPTIONS[tool], where, strict=True):
            is_given = option in words or (option == "-n" and tuple(words[:3]) in OF_ALL_NAMESPACES)
            own += f" {option} {shlex.quote(value)}" if value and not is_given else ""
    return (program + own.removeprefix("minicluster") if tool == "minicluster" else own) + dashes + rest


def some(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many more there are.

    >>> some(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number and what it counts; ``many`` is the plural if it is not formed with an s.

    >>> counted(1, "node"), counted(2, "node"), counted(0, "job waits", "jobs wait")
    ('1 node', '2 nodes', '0 jobs wait')
    """
    return f"{number} {one if number == 1 else many or f'{one}s'}"
