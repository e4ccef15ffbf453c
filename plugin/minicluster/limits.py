"""What a text in YAML may not be: so deep, or so much larger than it is written, that reading it would never end.

Seen from the parser's events, before anything is made of them: libyaml's composer calls itself for each level and
crashes, its scanner looks at all open brackets for each token, and an alias costs nothing until it is walked.
"""

from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml import events

#: Levels of lists and maps. Python's own limit, of calls, is some hundreds of them.
DEPTH = 100
#: Values that aliases may stand for, beyond those that are written.
COPIES = 100_000
#: Characters of a text that count as a value.
TEXT = 64


@dataclass
class _Open:
    """A list or map that has begun."""

    anchor: str | None
    size: int = 1  #: values in it, those of its aliases too
    height: int = 1  #: levels in it


@dataclass
class _Document:
    """What is known of a document up to an event."""

    stack: list[_Open] = field(default_factory=lambda: [_Open(None)])
    anchors: dict[str, tuple[int, int] | None] = field(default_factory=dict)  #: size and height; None while it is open
    copies: int = 0

    def add(self, size: int, height: int, mark: Any) -> None:
        """Add a value to what is open."""
        top = self.stack[-1]
        top.size += size
        top.height = max(top.height, height + 1)
        if len(self.stack) + height > DEPTH + 1:
            raise _error(f"it is nested over {DEPTH} levels deep", mark)


def check(data: bytes | str, parser: Any) -> None:
    """Look at all documents of a stream. Raises YAMLError for one that is too deep, or too large.

    ``parser`` is a loader's class.
    """
    document = _Document()
    for event in yaml.parse(data, Loader=parser):
        match event:
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
            case events.ScalarEvent():
                size = 1 + len(event.value) // TEXT
                document.add(size, 0, event.start_mark)
                if event.anchor:
                    document.anchors[event.anchor] = size, 0
            case events.AliasEvent():
                _alias(document, event)


def _alias(document: _Document, event: Any) -> None:
    known = document.anchors.get(event.anchor, (1, 0))  # what is unknown is the composer's to refuse
    if known is None:
        raise _error(f"the alias {event.anchor} is inside of what it stands for", event.start_mark)
    document.copies += known[0]
    if document.copies > COPIES:
        raise _error(f"its aliases stand for over {COPIES} values", event.start_mark)
    document.add(*known, event.start_mark)


def _error(problem: str, mark: Any) -> yaml.YAMLError:
    return yaml.composer.ComposerError(None, None, problem, mark)
