"""A burst that follows the queue, as users write it: NAME[:MIN-MAX][@[CONTEXT/]NAMESPACE]."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from minicluster.errors import SpecError
from minicluster.kube.names import LABEL, NAME_CHARACTERS


class BurstSpec(NamedTuple):
    """A burst with its limits and its place; None for a part that is not given."""

    name: str
    min: int  #: hosts
    max: int | None  #: hosts; None: all that the root has registered
    context: str | None
    namespace: str | None

    def most(self, registered: int) -> int:
        """Return the largest size, in hosts, of a burst with ``registered`` hosts."""
        return registered if self.max is None else self.max


def parse(text: str) -> BurstSpec:
    """Return the burst that a text describes. Raises SpecError when it is not one.

    >>> parse("burst-0:1-4@cloud/jobs")
    Wanted(name='burst-0', min=1, max=4, context='cloud', namespace='jobs')
    """
    match = re.fullmatch(r"([^:@]+)(?::([0-9]{1,9})-([0-9]{1,9}))?(?:@(?:(.*)/)?([^/]*))?", text)
    if not match:
        raise SpecError(f"{text!r} is not NAME, NAME:MIN-MAX, NAME@NAMESPACE or NAME@CONTEXT/NAMESPACE")
    name, least, most, context, namespace = match.groups()
    if namespace and not (len(namespace) <= NAME_CHARACTERS and re.fullmatch(LABEL, namespace)):
        raise SpecError(
            f"{text!r} in the namespace {namespace!r}: use a-z, 0-9 and - there, at most {NAME_CHARACTERS} characters"
        )
    return BurstSpec(name, int(least or 0), None if most is None else int(most), context, namespace)


def problems(bursts: Sequence[BurstSpec], registered: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with some bursts; ``registered`` has the root's number of hosts for each name."""
    names = [one.name for one in bursts]
    for one in bursts:
        if one.name not in registered:
            yield f"{one.name}: flux.bursting.clusters has {', '.join(registered)}; name one of these"
            continue
        hosts = registered[one.name]
        most = one.most(hosts)
        if not 1 <= most <= hosts:
            yield f"{one.name} with at most {most} hosts: give 1 to {hosts}, which are registered"
        elif one.min > most:
            yield f"{one.name} with at least {one.min} and at most {most} hosts: lower the first"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{name} twice: a burst runs in one place; drop one of them"
