"""Numbers of things in sentences."""


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number and what it counts; ``many`` is the plural if it is not formed with an s.

    >>> counted(1, "node"), counted(2, "node"), counted(0, "job waits", "jobs wait")
    ('1 node', '2 nodes', '0 jobs wait')
    """
    return f"{number} {one if number == 1 else many or f'{one}s'}"
