"""Names that Kubernetes accepts (RFC 1123), its quantities, names of the chart, and a place in a command."""

import re
import shlex
from decimal import Decimal

from minicluster.errors import SpecError

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
#: The most characters of a label, such as the name of a Service, a host or a namespace.
NAME_CHARACTERS = 63
#: Label that Kubernetes gives each pod of an Indexed Job
INDEX = "batch.kubernetes.io/job-completion-index"
#: The chart's name, where no parent chart gives it an alias
CHART_NAME = "minicluster"
#: After the name of a MiniCluster: its ConfigMap, and the Secret with its certificate
CONFIG_SUFFIX, CURVE_SUFFIX = "-config", "-curve"
#: The most characters of a release's name, as Helm checks it (pkg/chart/common/util, ValidateReleaseName)
RELEASE_CHARACTERS = 53
#: The reasons of our drains begin with this. Only these are undrained when the hosts come back. Our lines of a pod's
#: log begin with it, too.
OUR_PREFIX = "minicluster: "
#: The attribute of a job that says whether it may run again: 1 or 0
REQUEUE_ATTRIBUTE = "user.minicluster.requeue"

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


def chart_name(text: str) -> str:
    """Return the name of a chart that Helm, or a label, shows with its version.

    >>> chart_name("mini-2-0.1.0-rc.1")
    'mini-2'
    """
    return re.sub(r"-v?[0-9]+\.[0-9]+\.[0-9]+([-+_].*)?$", "", text)


def options_of(namespace: str, context: str) -> str:
    """Return the options of a command, with a space before each; "" where the current ones are meant."""
    given = {"-n": namespace, "--context": context}
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given.items() if value)


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
