"""Commands, batches and scripts, which flux-operator put into a bash script, become texts that mean the same here.

There are warnings of texts that rely on flux-operator's pods: on their files, their view, an exit. A resource file that
a snippet writes becomes values of the runner.
"""

import re
from collections.abc import Iterator
from typing import Any

from minicluster.console import lines
from minicluster.convert.part import MOUNT_PATH, Part, every_container, runners
from minicluster.documents import BYTE_ORDER_MARK
from minicluster.flux import parse_idset

#: What a `$` or a backtick expands, unless it is escaped
EXPANSION = re.compile(r"(?s)\\.|(\$[\w{(@*#?$!-]|`)")
#: What a backslash escapes inside double quotes, and in the text of a heredoc
QUOTED_ESCAPE = re.compile(r'\\([$`"\\\n])')
HEREDOC_ESCAPE = re.compile(r"\\([$`\\])")
#: An expansion, with the operators and quotes in it
SPAN = re.compile(r"\$\([^()]*\)|\$\{[^}]*\}|`[^`]*`")
#: Operators of a shell that flux-operator passed to the program as words
OPERATOR_TEXT = re.compile(r"[;&|<>()]+|(?<!\S)[#~]|\{[^\s{}]*(?:,|\.\.)[^\s{}]*\}|\\(?=[^$`\"\\\n])")
#: Variables of flux-operator's entrypoint, and its files, that the user's texts may use
VARIABLES = (
    "asFlux|asSudo|brokerOptions|cfg|command|configroot|curvepath|fluxpath|fluxroot|fluxuid|fluxuser|foundroot|"
    "mainHost|pythonversion|software|viewbase|viewbin|viewroot|workdir|STATE_DIR"
)
#: Those whose names are too common to be an attempt to change the entrypoint's
READ = "hosts|node_spec|curvesrc"
USES_VARIABLE = re.compile(rf"\$\{{?({VARIABLES}|{READ})\b")
SETS_VARIABLE = re.compile(rf"(?:^|[;\s])({VARIABLES}|{READ})=", re.MULTILINE)
USES_FILE = re.compile(
    r"/flux_operator\b|flux-connect\.sh|load-fluxion\.sh|/home/flux-operator|flux-job\.batch|"
    r"\betc/flux/system/(?:hostlist|R)\b"
)
#: `exit` as a command, with no code or 0
EXIT = re.compile(r"(?:^|[;&|{(]|\b(?:then|else|do)\b)[ \t]*exit(?:[ \t]+0)?[ \t]*(?:$|[;&|})#])", re.MULTILINE)
#: What changes the view: the modules of its Python, or its files
INSTALLS = re.compile(r"\bensurepip\b|\bpip[\d.]*\s+install\b")
WRITES_FILE = r"\b(?:cp|mv|ln|rm|mkdir|touch|tee|tar|install|chmod|chown|rsync)\b[^\n;&|]*\s{0}/|>\s*{0}/"
#: A line that writes R and does nothing else
WRITES_R = re.compile(
    r"[ \t]*(?:sudo[ \t]+)?flux[ \t]+R[ \t]+encode\b([^\n;&|>]*)>[^\n;&|]*/etc/flux/system/R\b[^\n;&]*"
)
#: One that only shows it
SHOWS = re.compile(r"[ \t]*cat[ \t]+\S*/etc/flux/system/R[\"']?[ \t]*(?:\|\|[ \t]*true[ \t]*)?")
OPTIONS = {"cores": r"(?:--cores|-c)[= \t]*(\S+)", "gpus": r"(?:--gpus?|-g)[= \t]*(\S+)"}
IDSET = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*")


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


def warn_of_operator_names(spec: Part) -> None:
    """Warn of texts that use what only flux-operator's pods have."""
    for container, path, text in _texts(spec):
        used = names_of_operator(path, text)
        if used:
            container.warn(path, f"uses {', '.join(used)}, which only flux-operator's pods have")
        if "flux-service" in text and not spec.get("network.headlessName"):
            spec.make("network").fields["headlessName"] = "flux-service"
            place = f"{container.path}.{path}"
            spec.warn(
                "network.headlessName", f"is flux-service now: {place} uses this name, flux-operator's until 2025"
            )


def warn_of_view(spec: Part) -> None:
    """Warn of texts that rely on flux-operator's copy of the view, which is writable and in another folder."""
    if spec.get("flux.container.disable"):
        return
    mount = re.escape(spec.text("flux.container.mountPath") or MOUNT_PATH)
    view = rf"(?:{mount}/(?:view|software)|/opt/(?:software|views?))"
    for container, path, text in _texts(spec):
        if re.search(rf"{mount}/software\b", text):
            container.warn(path, "uses the folder software of flux-operator's view: here it is /opt/software")
        if re.search(WRITES_FILE.format(view), text) or (INSTALLS.search(text) and re.search(rf"{mount}\b", text)):
            container.warn(
                path, "may write to the view, which is read-only here: install into the image or another folder"
            )


def warn_of_exits(spec: Part) -> None:
    """Warn of snippets that end the pod with exit code 0, a success to flux-operator."""
    for container, path, text in _texts(spec):
        if _is_snippet(path) and not path.endswith((".post", ".prefix")) and EXIT.search(text):
            container.warn(
                path, "has an exit, which is an error here before the work begins: end the snippet with return"
            )


def _texts(spec: Part) -> Iterator[tuple[Part, str, str]]:
    """Yield the user's texts that a shell runs, each with its container and its path there."""
    for container in every_container(spec):
        command = container.get("command")
        texts = {"command": " ".join(map(str, command)) if isinstance(command, list) else command}
        texts |= {f"commands.{key}": text for key, text in container.at("commands").fields.items()}
        yield from ((container, path, text) for path, text in texts.items() if isinstance(text, str))


def names_of_operator(path: str, text: str) -> list[str]:
    """Return variables and files of flux-operator's pods that a text uses, and variables that a snippet sets."""
    sets = SETS_VARIABLE.findall(text)
    used = [name for name in USES_VARIABLE.findall(text) if name not in sets]
    told = [name for name in sets if name not in READ.split("|")] if _is_snippet(path) else []
    return list(dict.fromkeys([*used, *told, *USES_FILE.findall(text)]))


def _is_snippet(path: str) -> bool:
    return path.startswith("commands.") and not path.endswith(".script")


def take_resources(spec: Part) -> None:
    """Write out cores and GPUs of snippets that wrote R, in place of their lines."""
    for runner in runners(spec):
        for key in ("init", "pre", "brokerPre", "workerPre"):
            if runner.text(f"commands.{key}"):
                _take(runner, key)


def _take(runner: Part, key: str) -> None:
    text = runner.text(f"commands.{key}")
    lines = [line for line in text.split("\n") if not line.endswith("\\")]
    lines_encoded = [match[1] for line in lines if (match := WRITES_R.fullmatch(line))]
    if not lines_encoded:
        return
    dropped = [line for line in lines if WRITES_R.fullmatch(line) or SHOWS.fullmatch(line)]
    _drop(runner.at("commands"), key, dropped)
    # the last one counted
    numbers = {field: match[1] for field, option in OPTIONS.items() if (match := re.search(option, lines_encoded[-1]))}
    known = {field: len(parse_idset(ids)) for field, ids in numbers.items() if IDSET.fullmatch(ids.strip("\"'"))}
    runner.fields.update(known)
    parts = [f"{runner.path}.{field} is {number} now" for field, number in known.items()]
    parts += [f"set {runner.path}.{field}" for field in numbers if field not in known]
    names = ", ".join(names_of_operator(f"commands.{key}", "\n".join(dropped)))
    uses = f"; they use {names}, which only flux-operator's pods have" if names else ""
    made = ", ".join(parts) or "Flux counts the cores of its Kubernetes node here too"
    runner.warn(f"commands.{key}", f"wrote R by `flux R encode`: {made}. Its lines are dropped{uses}")


def _drop(commands: Part, key: str, dropped: list[str]) -> None:
    """Take lines out of a snippet, and the snippet if nothing is left. An `if` or a loop keeps a command."""
    text = commands.text(key)
    has_blocks = re.search(r"\b(?:then|else|do)\b|\{[ \t]*$|(?:\\|&&|\|\|)[ \t]*$", text, re.MULTILINE)
    lines = [("true" if has_blocks else None) if line in dropped else line for line in text.split("\n")]
    kept = "\n".join(line for line in lines if line is not None)
    if kept.strip():
        commands.fields[key] = kept
    else:
        del commands.fields[key]
