"""`minicluster support`: versions, values without secrets, the state, and the last lines, to find a fault."""

import json
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from minicluster.cluster.job import release_of
from minicluster.commands import options
from minicluster.console import lines, streams
from minicluster.documents import yamlio
from minicluster.errors import MiniClusterError, StateError, one_line
from minicluster.kube import tool
from minicluster.kube.kubectl import Kubernetes
from minicluster.release import helm
from minicluster.release.revisions import read_history, read_values
from minicluster.render import schema
from minicluster.status import why
from minicluster.status.document import status_of
from minicluster.status.lookup import find
from minicluster.status.table import table
from minicluster.waiting import logs

#: Longer than any fence in a log
FENCE = "`" * 6


@click.command("support")
@options.of_cluster
def command(name: str, namespace: str, context: str) -> None:
    """Print what a bug report needs, without secrets.

    Prints versions, values, status, what `why` says, and the last lines of the logs. Texts of the values that may be
    secret are hidden, in the logs too: variables, commands, scripts, annotations. So is what looks like a key. What
    else a program prints can't be known: read the report before you publish it.

    \b
    Examples:
      minicluster support flux-sample > for-the-issue.md
    """
    for title, text in report(Kubernetes(context, namespace), name):
        streams.write(f"### {title}\n\n{FENCE}\n{text.rstrip()}\n{FENCE}\n\n".encode())


#: Lines of each log that are shown
LAST_LINES = 40
#: A shorter text may be a part of any word
SECRET_CHARACTERS = 6
#: Words that look like a key: that of a certificate, a token, a password in an address
SECRET_LOOKS = re.compile(r"""(?<=-key = ")[^"]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)""")


def report(kubernetes: Kubernetes, name: str) -> Iterator[tuple[str, str]]:
    """Yield title and text of each part of a report. A part that can't be read says why in its place."""
    values = ReportedValues(kubernetes, name)
    yield "Values", values.text
    parts: dict[str, Callable[[], str]] = {
        "Versions": lambda: _versions(kubernetes),
        "Status": lambda: table(status_of(kubernetes, name)),
        "Why": lambda: "\n".join(one_line(reason.text) for reason in why.of_cluster(kubernetes, name)),
        "Log of the lead": lambda: values.without_secrets(_log(kubernetes, name)),
        "Log of its broker": lambda: values.without_secrets(
            _last(logs.read_broker_log(*logs.find_log(kubernetes, name, "")))
        ),
    }
    for title, read in parts.items():
        yield title, SECRET_LOOKS.sub(HIDDEN_TEXT, _read(read))


def _read(read: Callable[[], str]) -> str:
    try:
        return read()
    except MiniClusterError as error:
        return f"can't be read: {one_line(str(error))}"


class ReportedValues:
    """The values of a release, and what of them no other part may show."""

    def __init__(self, kubernetes: Kubernetes, name: str) -> None:
        self._secrets: list[str] | None = None
        self.text = SECRET_LOOKS.sub(HIDDEN_TEXT, _read(lambda: self._of(kubernetes, name)))

    def _of(self, kubernetes: Kubernetes, name: str) -> str:
        job = kubernetes.get("job", find(kubernetes, name).name)
        release = release_of(job) if job else name
        values = read_values(kubernetes, release)
        shown = public(values)
        hidden = {part for text in hidden_texts(values, shown) for part in _parts(text)}
        self._secrets = sorted(hidden, key=len, reverse=True)
        last = max(read_history(kubernetes, release))
        return f"# revision {last.number} of {last.chart}, {last.status}\n{yamlio.dump(shown).decode()}"

    def without_secrets(self, text: str) -> str:
        """Return a text without what is hidden in the values. Raises StateError if that is not known."""
        if self._secrets is None:
            raise StateError("it may have secrets, which can't be hidden without the values")
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN_TEXT)
        return text


def _parts(text: str) -> Iterator[str]:
    """Yield what a log may have of a hidden text: its lines, and words of letters and digits, as passwords are."""
    yield from (line.strip() for line in lines.split(text) if len(line.strip()) >= SECRET_CHARACTERS)
    for word in re.split(r"[\s=:@,;'\"]+", text):
        if len(word) >= SECRET_CHARACTERS and re.search(r"\d", word) and re.search(r"[A-Za-z]", word):
            yield word


def _versions(kubernetes: Kubernetes) -> str:
    """Return the versions of what runs here and there. Raises ToolError."""
    versions = json.loads(kubernetes.kubectl("version", "--output=json"))
    return "\n".join(
        [
            f"minicluster {helm.version()}",
            f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
            f"Helm {tool.text(tool.run('helm', ('version', '--short'), seconds=tool.KUBECTL_SECONDS).stdout).strip()}",
            f"kubectl {versions['clientVersion']['gitVersion']}",
            f"Kubernetes {versions.get('serverVersion', {}).get('gitVersion', 'unknown')}",
        ]
    )


def _log(kubernetes: Kubernetes, name: str) -> str:
    cluster, host = logs.find_log(kubernetes, name, "")
    return _last(tool.text(b"".join(part.text for part in logs.show(cluster, host, ""))))


def _last(text: str) -> str:
    return "\n".join(lines.split(text)[-LAST_LINES:])


HIDDEN_TEXT = "(hidden)"
#: Formats of texts that may be anything. All others are names, numbers and paths
FREE_FORMATS = ("text", "line", "filled-line", "words")


def public(values: Any) -> Any:
    """Return values in which each text that the schema leaves free is hidden, as in variables and commands."""
    return _public(values, schema.whole())


def _public(value: Any, rules: Mapping[str, Any]) -> Any:
    rules = schema.followed(rules)
    if isinstance(value, dict):
        known, others = rules.get("properties", {}), rules.get("additionalProperties")
        others = others if isinstance(others, dict) else {}
        return {key: _public(item, known.get(key, others)) for key, item in value.items()}
    if isinstance(value, list):
        items = rules.get("items")
        return [_public(item, items if isinstance(items, dict) else {}) for item in value]
    is_name = "enum" in rules or rules.get("format", "text") not in FREE_FORMATS
    return HIDDEN_TEXT if isinstance(value, str) and value and not is_name else value


def hidden_texts(values: Any, shown: Any) -> Iterator[str]:
    """Yield the texts that are hidden in what ``public`` made of values."""
    if isinstance(values, dict):
        for key, item in values.items():
            yield from hidden_texts(item, shown[key])
    elif isinstance(values, list):
        for item, other in zip(values, shown, strict=True):
            yield from hidden_texts(item, other)
    elif values != shown:
        yield values
