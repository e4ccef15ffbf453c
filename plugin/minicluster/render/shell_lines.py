"""Whether a line is a complete command of a shell: only a shell knows, so what is refused here is wrong to any."""

import re

#: What needs a shell to be understood: expansions, here-documents, bash's own quotes and tests, patterns of `case`
UNCLEAR = re.compile(r"\$[({'\"]|`|<<|\[\[|\bcase\b")
QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""")
COMMENT = re.compile(r"(?:^|(?<=[\s;&|()<>]))#.*")
#: An operator at the end that needs something after it; `;` and `&` don't
OPEN = re.compile(r"(?:&&|;;|[<>;|]&|[|<>]+)$")
#: A ( among the words of the first command, where it is neither a subshell nor a function
WITHIN = re.compile(r"[^;&|]*?(?<![;&|<>?*+@!])\(")


def incomplete(words: str) -> str:
    """Return why words after a command, such as those after `flux submit`, don't complete it; "" if they may.

    >>> incomplete("echo a |")
    'it ends with |'
    """
    if UNCLEAR.search(words):
        return ""
    plain = COMMENT.sub("", QUOTED.sub("x", words)).rstrip()
    if end := OPEN.search(plain):
        return f"it ends with {end[0]}"
    if WITHIN.match(plain) or plain.count("(") != plain.count(")"):
        return "it has ( or ) without quotes"
    return ""
