"""Host names of a cluster in Flux's compact hostlist form (RFC 29)."""


def hosts(name: str, size: int) -> str:
    """Return the hosts of the pods of an Indexed Job, ``name-0`` or ``name-[0-N]``.

    >>> hosts("flux-sample", 4)
    'flux-sample-[0-3]'
    """
    return f"{name}-0" if size == 1 else f"{name}-[0-{size - 1}]"
