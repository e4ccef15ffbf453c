"""The formats of texts in the values, by the name of their ``format`` in the schema.

Helm would check a pattern in the schema itself, and show the pattern to the user. It doesn't check formats, so the
post-renderer can refuse a text in plain words. Editors show a format's name.
"""

import re
from typing import NamedTuple

from minicluster.kube.names import LABEL, WANTED

#: Control characters that no text may have.
CONTROL = r"\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff"
_CHARACTER = rf"[^\t\n{CONTROL}]"
_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = r"([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_UNSIGNED = r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,3})?"
_SUBDOMAIN = "[a-z0-9]([-.a-z0-9]*[a-z0-9])?"
_ATTRIBUTE = r"(policy=(low|high)|(node_centric|node_exclusive|set_stop_on_1_matches)=(true|false))"
_MATCH = ("first", "firstnodex", "high", "hinode", "hinodex", "lonode", "lonodex", "low")
# a registry's host may have dots, a port and capitals; the parts after it have lower case only
_HOST = r"([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]+)?"
_PART = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
_IMAGE = rf"({_HOST}/)?{_PART}(/{_PART})*(:[A-Za-z0-9_][-A-Za-z0-9_.]{{0,127}})?(@[A-Za-z0-9+._-]+:[0-9a-fA-F]{{32,}})?"

_ENDS = "and begin and end with a letter or digit"
_LABEL = f"have only a-z, 0-9 and -, {_ENDS}"


class Format(NamedTuple):
    """A pattern that the whole text matches, and what the text must do, in words that follow `must`."""

    pattern: str
    want: str


#: A field whose text is empty is unset, so most formats allow that.
FORMATS = {
    "text": Format(rf"[^{CONTROL}]*", "have no control characters"),
    "line": Format(rf"{_CHARACTER}*", "be one line"),
    "filled-line": Format(rf"{_CHARACTER}+", "be one line that is not empty"),
    "words": Format(rf"[^ \t\n{CONTROL}]*", "have no blanks: commas separate its words"),
    "image": Format(f"({_IMAGE})?", "be an image such as ubuntu:noble or ghcr.io/org/app:1.0"),
    "label": Format(f"({LABEL})?", _LABEL),
    "filled-label": Format(LABEL, _LABEL),
    "property": Format(
        "[A-Za-z0-9_][-A-Za-z0-9_.=/]*", "have only letters, digits and _-.=/, and not begin with - . = /"
    ),
    "subdomain": Format(f"({_SUBDOMAIN})?", f"have only a-z, 0-9, - and ., {_ENDS}"),
    "label-value": Format(f"({_NAME})?", f"have only letters, digits, -, _ and ., {_ENDS}"),
    "metadata-key": Format(_KEY, "be a name of at most 63 letters, digits, -, _ and ., such as app or example.com/app"),
    "variable": Format("[a-zA-Z_][a-zA-Z0-9_]*", "have only letters, digits and _, and not begin with a digit"),
    "container-variable": Format(
        "[-._a-zA-Z][-._a-zA-Z0-9]*", "have only letters, digits, -, _ and ., and not begin with a digit"
    ),
    "volume-name": Format("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", f"{_LABEL}, at most 63 characters"),
    "key": Format("[-._a-zA-Z0-9]+", "have only letters, digits, -, _ and ."),
    "resource": Format(
        r"cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMGTPE]i|[-.a-z0-9]+/[-._A-Za-z0-9]+",
        "be cpu, memory, ephemeral-storage, hugepages-SIZE, or the DOMAIN/NAME of a device",
    ),
    "quantity": Format(_UNSIGNED, f"be {WANTED}"),
    "capacity": Format(f"({_UNSIGNED})?", f"be {WANTED}"),
    "shared-memory": Format(f"(none|{_UNSIGNED})?", f"be none or {WANTED}"),
    "timeout": Format(r"([0-9]+(\.[0-9]+)?(ms|s|m|h|d)?)?", "be a time such as 5s, 500ms or 1m"),
    "topology": Format("(kary:[0-9]+|mincrit(:[0-9]+)?|binomial|custom)?", "be kary:N, mincrit:N, binomial or custom"),
    "queue-policy": Format("|".join(["", "fcfs", "easy", "hybrid", "conservative"]), "be conservative, hybrid or easy"),
    "match-policy": Format(
        f"({'|'.join(_MATCH)}|{_ATTRIBUTE}( {_ATTRIBUTE})*)?",
        f"be one of {', '.join(_MATCH)}, or attributes such as policy=low node_exclusive=true",
    ),
    "path": Format(f"(/{_CHARACTER}*)?", "be an absolute path"),
    "mount-path": Format(rf"(/[^:\n\t{CONTROL}]*)?", "be an absolute path without a colon"),
    "plain-path": Format("(/[-._a-zA-Z0-9/]+)?", "be an absolute path of letters, digits, -, _ and ."),
    "own-folder": Format(
        "/[-._a-zA-Z0-9/]*[-._a-zA-Z0-9]", "be an absolute path of letters, digits, -, _ and ., below /"
    ),
    "relative-path": Format(rf"[^/\n\t{CONTROL}]{_CHARACTER}*", "be a path that does not begin with /"),
    "hostlist": Format(rf"[^ \n\t\"'{CONTROL}]*", "be a hostlist such as proto-[0-3],other-0"),
    "address": Format(r"[-.:_a-zA-Z0-9\[\]]*", "be a host name or an address"),
    "host-port": Format(r"((\[[0-9a-fA-F:.]+\]|[-.a-zA-Z0-9]+)(:[0-9]{1,5})?)?", "be HOST or HOST:PORT"),
    "interface": Format(r"[-_.:a-zA-Z0-9\[\]]*|\*", "be the name of an interface, an address or *"),
}


def has(name: str, text: str) -> bool:
    """Tell whether a text has a format."""
    return bool(re.fullmatch(FORMATS[name].pattern, text))


def want(name: str, text: str) -> str:
    """Return what a text that breaks a format must do, in words that follow `must`."""
    if "\r" in text:
        return "have no carriage returns: save it with line ends of Unix"
    return FORMATS["text" if re.search(f"[{CONTROL}]", text) else name].want
