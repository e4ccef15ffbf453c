"""Limits of YAML that is read: how deep it is nested, how long a text is, how many values its aliases expand to.

They are checked on the parser's events, before any value is built: libyaml's composer calls itself for each level and
crashes, its scanner looks at all open brackets for each token, and an alias costs nothing until it is expanded.
"""

from collections.abc import Iterator
from typing import Any

import yaml
from yaml import events

from minicluster.documents import DEPTH_LEVELS

#: Values that aliases may expand to, beyond those that are written.
COPIED_VALUES = 100_000
#: Characters of a string that count as one value.
VALUE_CHARACTERS = 64
#: Characters of a text: the API server takes no larger request (MaxRequestBodyBytes, k8s.io/apiserver)
TEXT_CHARACTERS = 3 * 1024 * 1024
_TOO_LONG = f"mount a file in place of the text of {{}} characters, Kubernetes takes at most {TEXT_CHARACTERS},"


class _Open:
    """A list or map that has begun."""

    def __init__(self, anchor: str | None) -> None:
        self.anchor = anchor
        self.size = 1  #: values in it, with those of its aliases
        self.height = 1  #: levels in it


class _Document:
    """A document, as far as its events were read."""

    def __init__(self) -> None:
        self.stack = [_Open(None)]
        self.anchors: dict[str, tuple[int, int] | None] = {}  #: size and height, None while it is open
        self.copies = 0

    def add(self, size: int, height: int, mark: Any) -> None:
        """Add a value to the list or map that is open."""
        top = self.stack[-1]
        top.size += size
        top.height = max(top.height, height + 1)
        if len(self.stack) + height > DEPTH_LEVELS + 1:
            raise _error(f"it is nested more than {DEPTH_LEVELS} levels deep", mark)


def check(data: bytes | str, parser: Any) -> None:
    """Check all documents of a stream. Raises YAMLError for one that is too deep or too large.

    ``parser`` is the class of a loader.
    """
    for _ in checked(data, parser):
        pass


def checked(data: bytes | str, parser: Any) -> Iterator[Any]:
    """Yield the events of a stream, and check each. Raises YAMLError, as ``check`` does."""
    document = _Document()
    for event in yaml.parse(data, Loader=parser):
        yield event
        match event:
            case events.ScalarEvent():  # most are
                if len(event.value) > TEXT_CHARACTERS:
                    raise _error(_TOO_LONG.format(len(event.value)), event.start_mark)
                size = 1 + len(event.value) // VALUE_CHARACTERS
                document.add(size, 0, event.start_mark)
                if event.anchor:
                    document.anchors[event.anchor] = size, 0
            case events.DocumentStartEvent():
                document = _Document()
            case events.CollectionStartEvent():
                document.add(0, 1, event.start_mark)
                document.stack.append(_Open(event.anchor))
                if event.anchor:
                    document.anchors[event.anchor] = None
            case events.CollectionEndEvent():
                done = document.stack.pop()
                document.add(done.size, done.height, event.start_mark)
                if done.anchor:
                    document.anchors[done.anchor] = done.size, done.height
            case events.AliasEvent():
                _alias(document, event)


def _alias(document: _Document, event: Any) -> None:
    known = document.anchors.get(event.anchor, (1, 0))  # the composer refuses an unknown one
    if known is None:
        raise _error(f"the alias {event.anchor} is inside the value that it stands for", event.start_mark)
    document.copies += known[0]
    if document.copies > COPIED_VALUES:
        raise _error(f"its aliases expand to more than {COPIED_VALUES} values", event.start_mark)
    document.add(*known, event.start_mark)


def _error(problem: str, mark: Any) -> yaml.YAMLError:
    return yaml.composer.ComposerError(None, None, problem, mark)
