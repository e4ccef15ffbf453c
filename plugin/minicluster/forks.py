"""What begins anew in a child of this process: a fork copies locks and sockets, and no thread but its own."""

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """An object that is of use in a child, too."""

    def after_fork(self) -> None:
        """Begin anew, in a child: other threads are gone, and any lock may be held for ever."""


_KNOWN: WeakSet[Forked] = WeakSet()


def keep(one: Forked) -> None:
    """Call ``after_fork`` of an object, while there is one, in each child."""
    _KNOWN.add(one)


def _begin_anew() -> None:
    for one in list(_KNOWN):
        one.after_fork()


os.register_at_fork(after_in_child=_begin_anew)
