"""A burst that is to follow the queue, as users write it: NAME[:MIN-MAX][@[CONTEXT/]NAMESPACE]."""

import re
from typing import NamedTuple

from minicluster.errors import SpecError


class Wanted(NamedTuple):
    """A burst with its limits and its place; None for what is not given."""

    name: str
    min: int  #: hosts
    max: int | None  #: hosts; None: all that the root has registered
    context: str | None
    namespace: str | None


def parse(text: str) -> Wanted:
    """Return what a text says. Raises SpecError when it is not a burst.

    >>> parse("burst-0:1-4@cloud/jobs")
    Wanted(name='burst-0', min=1, max=4, context='cloud', namespace='jobs')
    """
    found = re.fullmatch(r"([^:@]+)(?::([0-9]{1,9})-([0-9]{1,9}))?(?:@(?:(.*)/)?([^/]*))?", text)
    if not found:
        raise SpecError(f"{text!r} is not NAME, NAME:MIN-MAX, NAME@NAMESPACE or NAME@CONTEXT/NAMESPACE")
    name, least, most, context, namespace = found.groups()
    return Wanted(name, int(least or 0), None if most is None else int(most), context, namespace)
