"""Commands, batches and scripts, which flux-operator put into a bash script, become texts that mean the same here."""

import re
from typing import Any

from minicluster.console import lines
from minicluster.convert.part import Part
from minicluster.documents import BYTE_ORDER_MARK

#: What a `$` or a backtick expands, unless it is escaped
EXPANSION = re.compile(r"(?s)\\.|(\$[\w{(@*#?$!-]|`)")
#: What a backslash escapes inside double quotes, and in the text of a heredoc
QUOTED_ESCAPE = re.compile(r'\\([$`"\\\n])')
HEREDOC_ESCAPE = re.compile(r"\\([$`\\])")
#: An expansion, with the operators and quotes in it
SPAN = re.compile(r"\$\([^()]*\)|\$\{[^}]*\}|`[^`]*`")
#: Operators of a shell that flux-operator passed to the program as words
OPERATOR_TEXT = re.compile(r"[;&|<>()]+|(?<!\S)[#~]|\{[^\s{}]*(?:,|\.\.)[^\s{}]*\}|\\(?=[^$`\"\\\n])")


def expands(text: str) -> bool:
    """Whether a shell expands something in a text."""
    return any(match[1] for match in EXPANSION.finditer(text))


def warn_of_expansion(part: Part, path: str, text: Any) -> None:
    """Warn of a text that flux-operator's shell expanded, and the chart takes literally."""
    if isinstance(text, str) and expands(text):
        part.warn(path, "has a $ or `: flux-operator's shell expanded it, here it is taken literally")


def command(runner: Part) -> str | list[str]:
    """Return the command as flux-operator's shell read it: between double quotes, then split at blanks.

    A shell's operators became words of the program there, so such a command becomes a list of words. Double quotes
    broke the command there, so such a text stays, and a shell reads it as it was meant.
    """
    text = runner.text("command")
    plain = SPAN.sub("", QUOTED_ESCAPE.sub("", text))
    if any(re.search(r"[\s;&|<>()]", part) for part in plain.split('"')[1::2]):
        runner.warn("command", "has double quotes, which break it in flux-operator: here a shell runs it as written")
        return text
    if "'" in plain:
        runner.warn("command", "has single quotes, which flux-operator passed to the program: here a shell reads them")
        return text
    operators = " ".join(dict.fromkeys(OPERATOR_TEXT.findall(plain)))
    words = operators or ("its lines" if "\n" in plain.strip() else "")
    pattern = re.search(r"[*?\[]", plain)
    if expands(text):
        runner.warn("command", "has a $ or `: here each task expands it, flux-operator expanded it once, on the lead")
        if words:
            runner.warn("command", f"is run by a shell here: flux-operator passed {words} to the program as words")
    elif words:
        none = ", without patterns" if pattern else ""
        passed = f"flux-operator passed {words} to the program as words"
        runner.warn(
            "command",
            f"is a list of words now{none}: {passed}; for a shell, write it as text",
        )
        return _double_quoted(text).split()
    elif pattern:
        runner.warn("command", "has a pattern: here each task expands it, flux-operator expanded it once, on the lead")
    return text


def _double_quoted(text: str) -> str:
    """Return what a shell makes of a text between double quotes; a quote inside it ends or begins the quoting."""
    return re.sub(r"\\([$`\"\\\n])|\"", lambda match: (match[1] or "").replace("\n", ""), text)


def batch(runner: Part) -> str:
    """Return the lines of a batch as flux-operator's `echo "…"` wrote them, with their quotes."""
    text = runner.text("command")
    if expands(text):
        runner.warn(
            "command", "has a $ or `: here the job expands it, flux-operator expanded it when it wrote the batch"
        )
    if '"' in QUOTED_ESCAPE.sub("", text):
        runner.warn("command", "has double quotes, which flux-operator lost: here they are kept")
    if not runner.get("batchRaw"):
        runner.warn("batch", "numbers the files of its jobs from 1: flux-operator began at 0 and counted blank lines")
    return QUOTED_ESCAPE.sub(lambda match: match[0] if match[1] == "\n" else match[1], text)


def heredoc(part: Part, path: str, end: str) -> str:
    """Return a text as flux-operator's heredoc wrote it, except that nothing is expanded."""
    text = part.text(path).removeprefix(BYTE_ORDER_MARK)
    if expands(text):
        part.warn(path, "has an unescaped $ or `: flux-operator expanded it first, here it is stored as given")
    if end in lines.split(text):
        part.warn(path, f"has a line {end}: flux-operator's text ended there")
    return HEREDOC_ESCAPE.sub(r"\1", text)


def script(part: Part, path: str) -> str:
    """Return a script that bash runs, as flux-operator did whatever the first line says."""
    text = heredoc(part, path, "EOF")
    first, newline, rest = text.partition("\n")
    if not first.startswith("#!") or re.fullmatch(r"#! *(/usr)?/bin/(env +)?bash\s*", first):
        return text
    if re.fullmatch(r"#! *(/usr)?/bin/(env +)?(ba|da|a)?sh( .*)?\s*", first):
        part.warn(path, f"begins with #!/bin/bash now: flux-operator ran it with bash instead of {first}")
        return f"#!/bin/bash{newline}{rest}"
    part.warn(path, f"begins with {first}, which runs it here: flux-operator ran it with bash")
    return text
