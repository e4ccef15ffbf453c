"""The site for programs: each page as Markdown beside its HTML, and llms.txt, which lists them (llmstxt.org)."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import click
from minicluster.commands import group
from sphinx.pycode import ModuleAnalyzer

#: The package that the page of the SDK describes
SDK = "minicluster.sdk"
TREE = re.compile(r"^```{toctree}\n(.*?)^```\n*", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```{eval-rst}\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^ +:prog: minicluster (.+)$", re.MULTILINE)
OBJECT = re.compile(r"^\.\. auto(?:class|exception):: (\w+)\(\)(?:\n +:members:(.*))?", re.MULTILINE)
IMAGE = re.compile(r"\]\((?:\.\./)*images/")
OPENING = re.compile(r"# ([^\n]+)\n\n(.+?)\n(?:\n|\Z)", re.DOTALL)
#: A name's module, and the frame of a class: noise in a signature
MODULE = re.compile(r"<class '(?:\w+\.)*(\w+)'>|\b(?:[a-z_]+\.)+(?=[A-Z])")
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
#: The section whose links a reader may leave out, as llmstxt.org has it
OPTIONAL = "Optional"
EACH_PAGE = (
    "Each page is here as Markdown. With `.html` in the place of `.md` its address is that of the page for people."
)


def written(sources: dict[str, str]) -> dict[str, str]:
    """Return the files to write, by their paths in the site, from the pages' sources by their names."""
    pages = {f"{name}.md": page(name, text) for name, text in sources.items()}
    return {**pages, "llms.txt": contents(sources)}


def page(name: str, text: str) -> str:
    """Return a page as Markdown alone: what Sphinx would make of its blocks is made here, as text."""
    text = BLOCK.sub(lambda match: "\n".join([*commands(match[1]), *objects(match[1])]), TREE.sub("", text))
    # Sphinx copies images to this folder
    return IMAGE.sub(f"]({'../' * name.count('/')}_images/", text).rstrip() + "\n"


def commands(block: str) -> Iterator[str]:
    """Yield the help of the commands that a block names, and of their subcommands."""
    for name in COMMAND.findall(block):
        command = group.get_command(click.Context(group), name)
        if command:
            yield from help_of(command, click.Context(command, info_name=f"minicluster {name}", terminal_width=100))


def help_of(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the help of a command, and of its subcommands."""
    yield f"### `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if each := command.get_command(context, name):
                yield from help_of(each, click.Context(each, parent=context, info_name=name, terminal_width=100))


def objects(block: str) -> Iterator[str]:
    """Yield the classes of the SDK that a block names, with the members that it names, or all."""
    sdk = importlib.import_module(SDK)
    for name, names in OBJECT.findall(block):
        one = getattr(sdk, name)
        notes = {
            attribute: "\n".join(lines).strip() for (owner, attribute), lines in _notes(one) if owner == one.__name__
        }
        own = [each for each in vars(one) if not each.startswith("_") and inspect.getdoc(vars(one)[each])]
        yield f"### `{name}`\n\n{inspect.getdoc(one)}\n"
        for member in names.replace(",", " ").split() or dict.fromkeys([*notes, *own]):
            yield f"#### `{_shown(one, member)}`\n\n{notes.get(member) or inspect.getdoc(getattr(one, member))}\n"


def _notes(one: Any) -> list[tuple[tuple[str, str], list[str]]]:
    return [*ModuleAnalyzer.for_module(one.__module__).find_attr_docs().items()]


def _shown(one: Any, member: str) -> str:
    value = getattr(one, member, None)
    kind = inspect.get_annotations(one).get(member)
    text = inspect.signature(value) if callable(value) else f": {inspect.formatannotation(kind)}" if kind else ""
    return member + MODULE.sub(r"\1", str(text))


def contents(sources: dict[str, str]) -> str:
    """Return llms.txt: the sections of the first page's tables of contents, and what only other pages list."""
    title, about = opening(sources["index"])
    sections = dict(_sections(sources["index"]))
    listed = {name for names in sections.values() for name in names}
    sections[OPTIONAL] = sorted(sources.keys() - listed - {"index"})
    lists = {caption: "".join(_entry(name, sources[name]) for name in names) for caption, names in sections.items()}
    parts = [f"## {caption}\n\n{entries}" for caption, entries in lists.items()]
    return "\n".join([f"# {title}\n\n> {about}\n\n{EACH_PAGE}\n", *parts])


def _sections(index: str) -> Iterator[tuple[str, list[str]]]:
    for tree in TREE.findall(index):
        options, names = tree.split("\n\n", 1)
        yield options.partition(":caption: ")[2], names.split()


def _entry(name: str, text: str) -> str:
    title, about = opening(text)
    return f"- [{title}]({name}.md): {re.split(r'(?<=[.]) (?=[A-Z`*])', about)[0]}\n"


def opening(text: str) -> tuple[str, str]:
    """Return the title and the first paragraph of a page, without marks of links. Raises ValueError without them."""
    match = OPENING.match(text)
    if not match:
        raise ValueError(f"a page must begin with a title and a paragraph: {text[:60]!r}")
    title, paragraph = (LINK.sub(r"\1", part) for part in match.groups())
    return title, " ".join(paragraph.split())
