"""What somebody needs who is to find a fault: versions, values without secrets, the state, and the last lines."""

import json
import platform
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from minicluster import lines, tool, yamlio
from minicluster.cluster.job import release_of
from minicluster.errors import MiniClusterError, StateError, one_line
from minicluster.kube.kubectl import Kubernetes
from minicluster.live import broker_log, logs, why
from minicluster.live.document import document
from minicluster.live.lookup import find
from minicluster.live.snapshot import take_snapshot
from minicluster.live.table import table
from minicluster.release import helm
from minicluster.release.public_values import HIDDEN_TEXT, hidden_texts, public
from minicluster.release.revisions import read_history, read_values

#: Lines of each log that are shown
LAST_LINES = 40
#: A shorter text may be a part of any word
SECRET_CHARACTERS = 6
#: Words that look like a key: that of a certificate, a token, a password in an address
SECRET_LOOKS = re.compile(r"""(?<=-key = ")[^"]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)""")


class ReportPart(NamedTuple):
    """A part of the report."""

    title: str
    text: str


def report(kubernetes: Kubernetes, name: str) -> Iterator[ReportPart]:
    """Yield the parts of a report. A part that can't be read says why in its place."""
    values = ReportedValues(kubernetes, name)
    yield ReportPart("Values", values.text)
    parts: dict[str, Callable[[], str]] = {
        "Versions": lambda: _versions(kubernetes),
        "Status": lambda: table(document(take_snapshot(kubernetes, name, datetime.now(UTC)))),
        "Why": lambda: "\n".join(one_line(reason.text) for reason in why.of_cluster(kubernetes, name)),
        "Log of the lead": lambda: values.without_secrets(_log(kubernetes, name)),
        "Log of its broker": lambda: values.without_secrets(_broker_log(kubernetes, name)),
    }
    for title, read in parts.items():
        yield ReportPart(title, SECRET_LOOKS.sub(HIDDEN_TEXT, _read(read)))


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
    found = json.loads(kubernetes.kubectl("version", "--output=json"))
    return "\n".join(
        [
            f"minicluster {helm.version()}",
            f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
            f"Helm {tool.text(tool.run('helm', ('version', '--short'), seconds=tool.KUBECTL_SECONDS).stdout).strip()}",
            f"kubectl {found['clientVersion']['gitVersion']}",
            f"Kubernetes {found.get('serverVersion', {}).get('gitVersion', 'unknown')}",
        ]
    )


def _log(kubernetes: Kubernetes, name: str) -> str:
    cluster, host = logs.find_log(kubernetes, name, "")
    return _last(tool.text(b"".join(part.text for part in logs.show(cluster, host, ""))))


def _broker_log(kubernetes: Kubernetes, name: str) -> str:
    return _last(broker_log.read(*logs.find_log(kubernetes, name, "")))


def _last(text: str) -> str:
    return "\n".join(lines.split(text)[-LAST_LINES:])
