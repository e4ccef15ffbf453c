"""Quantities of Kubernetes, such as 500m or 8Gi (apimachinery/pkg/api/resource/quantity.go)."""

import re
from decimal import Decimal

from minicluster.errors import SpecError

#: What a message asks for.
WANTED = "a quantity, e.g. 4, 500m or 8Gi"
_QUANTITY = re.compile(
    r"""(?P<number>[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))
    (?:(?P<binary>[KMGTPE])i|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[-+]?[0-9]{1,3}))?""",
    re.VERBOSE,
)
#: The least of memory or storage that anybody means, in bytes; the most CPUs of a node that Linux supports
LEAST_BYTES, MOST_CORES = 1 << 20, 8192
#: Up to this number without a unit, GiB are most likely meant, else MiB
FEW_BYTES = 256
_POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def is_quantity(value: object) -> bool:
    """Tell whether a value, a string or a number, is a quantity."""
    return bool(_QUANTITY.fullmatch(str(value)))


def is_zero(value: object) -> bool:
    """Tell whether a quantity is given, as a text or a number, and is 0; None and "" are unset."""
    return value not in (None, "") and not to_number(value)


def to_number(value: object) -> Decimal:
    """Return the number that a quantity stands for.

    Raises SpecError when the value is not a quantity.

    >>> to_number("1500m"), to_number("1Ki")
    (Decimal('1.500'), Decimal('1024'))
    """
    match = _QUANTITY.fullmatch(str(value))
    if not match:
        raise SpecError(f"{str(value)!r} is not a quantity: give e.g. 4, 500m or 8Gi")
    number = Decimal(match["number"])
    if match["binary"]:
        return number * Decimal(1024) ** (1 + "KMGTPE".index(match["binary"]))
    power = _POWERS[match["decimal"]] if match["decimal"] else int(match["exponent"] or 0)
    return number * Decimal(10) ** power


def unmeant(name: str, value: object) -> str:
    """Return why nobody means a quantity of a resource, and what they may mean; "" for any other.

    >>> unmeant("memory", "10"), unmeant("memory", "512m"), unmeant("memory", "8Gi")
    ('10 bytes: did you mean 10Gi?', '0.512 bytes: did you mean 512Mi?', '')
    """
    match, amount = _QUANTITY.fullmatch(str(value)), to_number(value)
    if name == "cpu":
        return f"{amount:f} CPUs, and no node has more than {MOST_CORES}: lower it" if amount > MOST_CORES else ""
    if "/" in name or not 0 < amount < LEAST_BYTES or not match:
        return ""
    has_unit = match["binary"] or match["decimal"] or match["exponent"]
    unit = "Mi" if has_unit or amount > FEW_BYTES else "Gi"
    return f"{amount.normalize():f} {'byte' if amount == 1 else 'bytes'}: did you mean {match['number']}{unit}?"
