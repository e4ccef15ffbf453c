"""Warnings about commands and snippets that use what only flux-operator's pods have, or do what only they take."""

import re
from collections.abc import Iterator

from minicluster.convert.part import Part, every_container

#: Variables of flux-operator's entrypoint, which a text of the user's may use, and its files
VARIABLES = (
    "asFlux|asSudo|brokerOptions|cfg|command|configroot|curvepath|fluxpath|fluxroot|fluxuid|fluxuser|foundroot|"
    "mainHost|pythonversion|software|viewbase|viewbin|viewroot|workdir|STATE_DIR"
)
USES_VARIABLE = re.compile(rf"\$\{{?({VARIABLES})\b")
SETS_VARIABLE = re.compile(rf"(?:^|[;\s])({VARIABLES})=", re.MULTILINE)
USES_FILE = re.compile(r"/flux_operator\b|flux-connect\.sh|load-fluxion\.sh|/home/flux-operator|flux-job\.batch")
#: `exit` as a command, with no code or 0
EXIT = re.compile(r"(?:^|[;&|{(]|\b(?:then|else|do)\b)[ \t]*exit(?:[ \t]+0)?[ \t]*(?:$|[;&|})#])", re.MULTILINE)
#: What changes the view: the modules of its Python, or its files
INSTALLS = re.compile(r"\bensurepip\b|\bpip[\d.]*\s+install\b")
WRITES = r"\b(?:cp|mv|ln|rm|mkdir|touch|tee|tar|install|chmod|chown|rsync)\b[^\n;&|]*\s{0}/|>\s*{0}/"


def warn_of_operator_names(spec: Part) -> None:
    """Warn of texts that use what only flux-operator's pods have."""
    for container, path, text in _texts(spec):
        used = _of_the_operator(path, text)
        if used:
            container.warn(path, f"uses {', '.join(used)}, which flux-operator's pods have and these do not")
        if "flux-service" in text and not spec.get("network.headlessName"):
            spec.make("network").fields["headlessName"] = "flux-service"
            place = f"{container.path}.{path}"
            spec.warn("network.headlessName", f"is flux-service now, the name until 2025 that {place} has")


def warn_of_view(spec: Part) -> None:
    """Warn of texts that use flux-operator's copy of the view as it was: in a folder of its own, and writable."""
    if spec.get("flux.container.disable"):
        return
    mount = re.escape(spec.text("flux.container.mountPath") or "/mnt/flux")
    view = rf"(?:{mount}/(?:view|software)|/opt/(?:software|views?))"
    for container, path, text in _texts(spec):
        if re.search(rf"{mount}/software\b", text):
            container.warn(path, "uses the folder software of flux-operator's view: here it is /opt/software")
        if re.search(WRITES.format(view), text) or (INSTALLS.search(text) and re.search(rf"{mount}\b", text)):
            container.warn(
                path, "may change the view, which can't be written to here: install into the image, or a folder"
            )


def warn_of_exits(spec: Part) -> None:
    """Warn of snippets that end the pod, which flux-operator took for a success."""
    for container, path, text in _texts(spec):
        if _is_snippet(path) and not path.endswith((".post", ".prefix")) and EXIT.search(text):
            container.warn(path, "has an exit, which is an error before the work here: end the snippet with return")


def _texts(spec: Part) -> Iterator[tuple[Part, str, str]]:
    """Yield the texts of the user that a shell runs, each with its container and its path there."""
    for container in every_container(spec):
        command = container.get("command")
        texts = {"command": " ".join(map(str, command)) if isinstance(command, list) else command}
        texts |= {f"commands.{key}": text for key, text in container.at("commands").fields.items()}
        yield from ((container, path, text) for path, text in texts.items() if isinstance(text, str))


def _of_the_operator(path: str, text: str) -> list[str]:
    """Return what only flux-operator's pods have, and a text uses, or a snippet sets."""
    sets = SETS_VARIABLE.findall(text)
    used = [name for name in USES_VARIABLE.findall(text) if name not in sets]
    return list(dict.fromkeys([*used, *(sets if _is_snippet(path) else []), *USES_FILE.findall(text)]))


def _is_snippet(path: str) -> bool:
    return path.startswith("commands.") and not path.endswith(".script")
