"""A release: its version and its notes; `tools/artifacts.py` builds its files.

python tools/release.py set 0.2.0     writes the version, and dates the changelog's Unreleased part
python tools/release.py notes 0.2.0   prints that version's part of the changelog; fails when a file has another
"""

import argparse
import datetime
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHANGELOG = "CHANGELOG.md"
#: The files with a line `version: X`; the package has the version of the chart.
VERSIONED = ("charts/minicluster/Chart.yaml", "plugin/plugin.yaml")
#: Files that name the version that users install.
NAMING = (
    "docs/how-to/burst.md",
    "docs/how-to/deploy-with-gitops.md",
    "docs/how-to/install.md",
    "docs/how-to/use-in-other-tools.md",
    "gitops/argocd/repo-server-patch.yaml",
    "gitops/github-actions/render.yaml",
    "values-examples/bursting-follow.yaml",
)
VERSION = re.compile(r"^version: (\S+)$", re.MULTILINE)
UNRELEASED = "## [Unreleased]\n"
#: The chart's annotation with its changes, to the end of the file
CHANGES = re.compile(r"(?<=  artifacthub\.io/changes: \|\n)(    .*\n)+\Z")
#: Kinds of changes that Artifact Hub knows (artifacthub.io/docs/topics/annotations/helm)
KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")


class PublishError(RuntimeError):
    """A release can't be made; the text says why."""


def version(root: Path) -> str:
    """Return the version. Raises PublishError when the files differ."""
    by_file = {file: VERSION.findall((root / file).read_text(encoding="utf-8")) for file in VERSIONED}
    versions: set[str] = {text for texts in by_file.values() for text in texts}
    if len(versions) != 1 or not all(by_file.values()):
        raise PublishError(f"the versions differ: {by_file}: run `python tools/release.py set VERSION`")
    return versions.pop()


def notes(root: Path, wanted: str) -> str:
    """Return a version's part of the changelog. Raises PublishError if it is empty, or if the files differ from it."""
    if version(root) != wanted:
        raise PublishError(f"the version is {version(root)}, not {wanted}: run `python tools/release.py set {wanted}`")
    changes = (root / CHANGELOG).read_text(encoding="utf-8")
    match = re.search(rf"^## \[{re.escape(wanted)}\] - \d{{4}}-\d\d-\d\d\n", changes, re.MULTILINE)
    text = _up_to_next(changes[match.end() :]) if match else ""
    if not text:
        raise PublishError(f"{CHANGELOG} says nothing of {wanted}: run `python tools/release.py set {wanted}`")
    return text + "\n"


def _up_to_next(changes: str) -> str:
    return changes.partition("\n## [")[0].strip()


def changes_of(part: str) -> str:
    r"""Return a part of the changelog as Artifact Hub has it: the first sentence of each item, without its marks.

    >>> changes_of("### Added\n\n- **A `b`** is\n  here ([docs](x.md)). More.\n")
    '    - kind: added\n      description: >-\n        A b is here\n'
    """
    lines, kind = [], ""
    for title, item in re.findall(r"^### (\w+)$|^- ((?:.+\n?)(?:  .+\n?)*)", part, re.MULTILINE):
        kind = title.lower() or kind
        if item and kind in KINDS:
            text = re.sub(r" \(\[.*?\]\(.*?\)\)", "", " ".join(item.split()))
            text = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text).replace("**", "").replace("`", "")
            first = re.split(r"(?<=[a-z0-9)\"])\. ", text.rstrip(".") + ". ")[0]
            folded = textwrap.fill(first, 110, break_long_words=False, break_on_hyphens=False)
            lines += [f"    - kind: {kind}\n      description: >-\n{textwrap.indent(folded, ' ' * 8)}\n"]
    return "".join(lines)


def set_version(root: Path, new: str, date: datetime.date) -> None:
    """Write a version into the files that have or name it; the changelog's Unreleased part gets it as its title.

    Raises PublishError and writes nothing when the version is malformed or exists, or when nothing is Unreleased.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", new):
        raise PublishError(f"{new} is not a version of three numbers, such as 0.2.0")
    changes = (root / CHANGELOG).read_text(encoding="utf-8")
    if f"\n## [{new}]" in changes:
        raise PublishError(f"{CHANGELOG} has {new} already: give the next version")
    before, _, after = changes.partition(UNRELEASED)
    if not _up_to_next("\n" + after.lstrip()):
        raise PublishError(f"{CHANGELOG} has nothing under Unreleased: there is nothing to release")
    old, listed = version(root), changes_of(_up_to_next("\n" + after.lstrip()) + "\n")
    for file in (*VERSIONED, *NAMING):
        text = (root / file).read_text(encoding="utf-8")
        made = VERSION.sub(f"version: {new}", text) if file in VERSIONED else text.replace(old, new)
        (root / file).write_text(CHANGES.sub(lambda _: listed, made), encoding="utf-8")
    dated = f"{before}{UNRELEASED}\n## [{new}] - {date.isoformat()}\n{after}"
    (root / CHANGELOG).write_text(dated, encoding="utf-8")


def main() -> None:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("set").add_argument("version")
    commands.add_parser("notes").add_argument("version")
    args = parser.parse_args()
    try:
        if args.command == "set":
            set_version(ROOT, args.version, datetime.datetime.now(tz=datetime.UTC).date())
        else:
            sys.stdout.write(notes(ROOT, args.version))
    except PublishError as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
