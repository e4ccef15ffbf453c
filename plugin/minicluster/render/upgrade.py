"""The upgrade of a live cluster: which changes are refused, and which files stay as they are.

It may come with another version of the chart. The pods, their template and their programs stay those of the version
that installed the cluster. A file of a ConfigMap reaches running pods within a minute, and an old program must not call
a new one. So only the mutable values are written into the live files, in the form that these have.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from minicluster.console.messages import Where, completed
from minicluster.errors import SpecError
from minicluster.render.constants import FORMER_DEFAULTS, MUTABLE_JOB_FIELDS
from minicluster.render.handover import Installed

# The values ---------------------------------------------------------------------------------------------------


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each leaf, as the chart writes them (`minicluster.flatten`)."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from flat(item, f"{path}[{index}]")
    elif value is not None:
        text = value if isinstance(value, str) else json.dumps(value)
        yield path, text if len(text.encode()) <= 64 else _digest(text)


def _digest(text: str) -> str:
    import hashlib  # noqa: PLC0415 - 3 ms

    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def changes(
    was: Mapping[str, str], asked: Mapping[str, str], defaults: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield path, old and new text of the values that differ between two records.

    A value that a record lacks has its default: another version of the chart wrote the record, or left the value out. A
    former default is the same as the default now.
    """
    for path in sorted(was.keys() | asked.keys()):
        default = defaults.get(path, "null")
        old, new = was.get(path, default), asked.get(path, default)
        same = old == new or (old in _EMPTY_TEXTS and new in _EMPTY_TEXTS)
        if not same and not (old == FORMER_DEFAULTS.get(path) and new == default):
            yield path, _shown(was, path, old), _shown(asked, path, new)


_EMPTY_TEXTS = ("{}", "[]", "null")


def _shown(record: Mapping[str, str], path: str, text: str) -> str:
    """Return the text of a value for a message; one that is no text, but a list, has a path for each item."""
    if text not in (*_EMPTY_TEXTS, ""):
        return text
    items = [record[item] for n in range(len(record)) if (item := f"{path}[{n}]") in record]
    return json.dumps(items, ensure_ascii=False) if items else "(unset)"


def immutable_values(installed: Installed, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in which all that are mutable have their defaults."""
    result = dict(values)
    for path in installed.mutable:
        result = _with_default(result, defaults, path.split("."))
    mutable = ("minSize", "autoscaling")
    groups = [{**{key: group[key] for key in group if key not in mutable}, "size": 0} for group in values["groups"]]
    return result | {"groups": groups}


def _with_default(values: Mapping[str, Any], defaults: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    key, *more = path
    if key not in defaults:
        return dict(values)
    return {**values, key: _with_default(values[key], defaults[key], more) if more else defaults[key]}


def refuse(installed: Installed, name: str, namespace: str, defaults: Mapping[str, str]) -> None:
    """Raise SpecError for the first immutable value that would change."""
    is_kept = any(installed.was.get(path) for path in ("state.capacity", "state.claimName", "archive.path"))
    for path, was, asked in changes(installed.was, installed.asked, defaults):
        hint = f"{installed.hint}; " if installed.hint else ""
        command = completed(f"minicluster replace {name}", Where(namespace))
        replace = f"`{command}` makes its Job anew and keeps the queue; or " if is_kept else ""
        loss = "," if is_kept else ", which loses its queue,"
        way = f"{replace}uninstall {installed.release} first{loss} or install under another name"
        if root := installed.was.get("flux.bursting.leadBroker.name"):
            way = f"`minicluster burst remove {root} {name}` comes first"
        group = _changed_groups(installed, name) if path.startswith("groups[") else ""
        change = f"{path} can't change on the live MiniCluster {name}: it is {was}, asked is {asked}"
        raise SpecError(f"{group or change}; {hint}{way}")


def _changed_groups(installed: Installed, name: str) -> str:
    """Return which group comes or goes; "" when none does."""
    records = (installed.was, installed.asked)
    was, asked = ([record[path] for path in sorted(record) if _GROUP_NAME.fullmatch(path)] for record in records)
    for groups, others, verb in ((asked, was, "added to"), (was, asked, "removed from")):
        for group in [one for one in groups if one not in others]:
            return f"the group {group} can't be {verb} the live MiniCluster {name}"
    return ""


_GROUP_NAME = re.compile(r"groups\[[0-9]+\]\.name")


def immutable_fields(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the immutable fields of a Job's spec."""
    return {field: value for field, value in job.get("spec", {}).items() if field not in MUTABLE_JOB_FIELDS}


def with_immutable(job: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Job with these immutable fields, and its own mutable ones."""
    own = immutable_fields(job)
    return {**job, "spec": {**fields, **{field: value for field, value in job["spec"].items() if field not in own}}}


# The files ----------------------------------------------------------------------------------------------------

#: The files of a container that is not the runner.
_OF_CONTAINER = re.compile(r"([^.]+)\.(?:command|script|(?:init|pre|post)\.sh)")
#: Programs that only other pods call. Those pods are new at each upgrade, so the programs are too.
NOT_OF_BROKERS = ("quorum.sh",)
#: The mutable settings of the agent.
_AGENT = ("size", "groups", "period", "policy", "port")
_ASSIGNMENT = re.compile(r"""(mc_\w+)=((?:'[^']*'|"'"|[^\s'"])*)\n""")
_COMMENT = re.compile(r"#.*\n")
_QUORUM = "-o-Sbroker.quorum="


def files(
    held: Mapping[str, str], fresh: Mapping[str, str], sidecars: set[str], words_before: Mapping[str, int]
) -> dict[str, str]:
    """Return the files of a live cluster after the upgrade: those it holds, with the fresh form of what is mutable.

    ``sidecars`` are the names of the containers beside the runner, whose files stay; the files of services are fresh.
    ``words_before`` is the number of words before the task flags, by setting.
    """
    if not {"settings.sh", "agent.json"} <= held.keys():  # somebody removed them: fresh ones are better than none
        return dict(fresh)
    of_services = {
        file for file in {*held, *fresh} if (match := _OF_CONTAINER.fullmatch(file)) and match[1] not in sidecars
    }
    kept = {file: text for file, text in held.items() if file not in of_services}
    new = {file: fresh[file] for file in {*of_services, *NOT_OF_BROKERS} & fresh.keys()}
    new["settings.sh"] = _settings(held["settings.sh"], fresh["settings.sh"], words_before)
    new["agent.json"] = _agent(held["agent.json"], fresh["agent.json"])
    return dict(sorted((kept | new).items()))


def _assignments(text: str) -> Iterator[re.Match[str]]:
    """Yield the assignments at the top. Below them is the user's environment, whose texts can look like assignments."""
    place = 0
    while match := _COMMENT.match(text, place):
        place = match.end()
    while match := _ASSIGNMENT.match(text, place):
        yield match
        place = match.end()


def _settings(held: str, fresh: str, words_before: Mapping[str, int]) -> str:
    """Return the held settings with size, quorum and node count of the fresh ones."""
    new = {match[1]: match[2] for match in _assignments(fresh)}
    lines, end = [], 0
    for match in _assignments(held):
        key, text, end = match[1], match[2], match.end()
        if key == "mc_size":
            text = new[key]
        elif key == "mc_start_words":
            text = _with_quorum(text, new[key])
        elif key in words_before:
            text = _with_nodes(text, new[key], words_before[key])
        lines.append(f"{key}={text}\n")
    begin = next((match.start() for match in _assignments(held)), 0)
    return held[:begin] + "".join(lines) + held[end:]


def _words(text: str) -> list[str]:
    """Return the words of a setting, whose value is itself a quoted list."""
    return shlex.split("".join(shlex.split(text)))


def _quoted(words: list[str]) -> str:
    return shlex.quote(shlex.join(words))


def _with_quorum(held: str, fresh: str) -> str:
    words = _words(held)
    quorum = [word for word in _words(fresh) if word.startswith(_QUORUM)]
    others = [word for word in words if not word.startswith(_QUORUM)]
    # where broker.start has it: before the other attributes of the broker
    place = next((index for index, word in enumerate(words) if word.startswith("-o-Sbroker.")), len(others))
    return _quoted([*others[:place], *quorum, *others[place:]])


def _with_nodes(held: str, fresh: str, before: int) -> str:
    words, new = _words(held), _words(fresh)
    nodes = new[before : before + 2] if new[before : before + 1] == ["-N"] else []
    after = before + 2 if words[before : before + 1] == ["-N"] else before
    return _quoted([*words[:before], *nodes, *words[after:]])


def _agent(held: str, fresh: str) -> str:
    """Return the held settings of the agent, with the fresh policy as far as the agent that runs knows it."""
    was, new = json.loads(held), json.loads(fresh)
    if new["policy"]:
        for key in sorted(new["policy"].keys() - set(was["policy_keys"])):
            if new["policy"].pop(key):
                raise SpecError(f"autoscaling: the agent of the live MiniCluster does not know {key}: unset it")
    return json.dumps(was | {key: new[key] for key in _AGENT if key in was}, indent=2) + "\n"
