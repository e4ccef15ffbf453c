"""Templates: a hostile text stays data, whatever its hole is part of; the scripts among them are sound shell."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from xml.etree import ElementTree

import failures
import jinja2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from minicluster import picture
from minicluster.burst import machines
from minicluster.commands import pictures
from minicluster.console.templates import rendered
from minicluster.errors import SpecError
from minicluster.render.load import load
from support import ROOT

from benchmarks import brokers, clusters, results, start, table
from tools import codemap, screen

SHELLCHECK = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
LABEL = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SPEC_TABLE = str(ROOT / "tests" / "chart" / "reference.py")


def of_machine(text: str) -> None:
    """Run start.sh, with a text among the words that start a broker."""
    script = rendered(machines.__file__, "start.sh.j2", start=["printf", "%s\\0", text])
    with TemporaryDirectory() as folder:
        env = {"PATH": "/usr/bin:/bin", "STATE_DIRECTORY": f"{folder}/state", "RUNTIME_DIRECTORY": f"{folder}/run"}
        done = subprocess.run(["sh", "-c", script], cwd=folder, env=env, capture_output=True, check=True)
    assert done.stdout.partition(b"\0")[0].decode() == text


def of_unit(text: str) -> None:
    """A lead whose name is no label is refused, so there is no unit."""
    lead = {"name": text, "address": "192.0.2.7", "size": 1}
    spec = {"size": 1, "flux": {"bursting": {"clusters": [{"name": "vm", "size": 1}], "leadBroker": lead}}}
    try:
        made = machines.unit(load({"metadata": {"name": "vm"}, "spec": spec}))
    except SpecError as error:
        assert "flux.bursting.leadBroker.name" in str(error)
        assert not LABEL.fullmatch(text)
        return
    unit = configparser.RawConfigParser()
    unit.read_string(made)
    assert unit["Unit"]["Description"] == f"Flux broker of the MiniCluster {text}"
    assert LABEL.fullmatch(text)


def of_bare_start(text: str) -> None:
    words = shlex.split(
        rendered(start.__file__, "bare_start.sh.j2", name="a", last=3, keeps=False, command=["echo", text])
    )
    assert words[words.index("echo") :][:3] == ["echo", text, "exec"]


def of_bare_cluster(text: str) -> None:
    for keeps in (False, True):
        words = shlex.split(clusters.bare(text, 4, keeps=keeps))
        assert {f"--hosts={text}-[0-3]", f"-Shostname={text}-$JOB_COMPLETION_INDEX"} <= set(words)


def of_broker_steps(text: str) -> None:
    words = shlex.split(rendered(brokers.__file__, "broker_steps.sh.j2", folder=text))
    assert {f">{text}/modules", f">{text}/eventlog"} <= set(words)


def of_results(text: str) -> None:
    with TemporaryDirectory() as folder:
        results.save(Path(folder, "a.json"), text, [{text: text}, {text: None}])
        found = results.load("a", Path(folder))
    assert (found["where"], found["rows"]) == (text, [{text: text}, {text: None}])


def is_table(table: str, *rows: list[str]) -> None:
    """A text may lose blanks in a table, and nothing else."""
    found = [re.split(r"(?<!\\)\|", line.strip("|")) for line in table.splitlines()]
    cells = [[cell.replace(r"\|", "|").split() for cell in line] for line in found]
    assert [cells[0], *cells[2:]] == [[cell.split() for cell in row] for row in rows]


def of_page(text: str) -> None:
    is_table(table.table(["a", text], [[text, "b"], ["c", text]]), ["a", text], [text, "b"], ["c", text])


def of_spec(text: str) -> None:
    head = ["field", "default", "what it does", "where it lands"]
    is_table(rendered(SPEC_TABLE, "fields.md.j2", rows=[("a", "b", text, "d")]), head, ["a", "b", text, "d"])


def of_failures(text: str) -> None:
    failure = SimpleNamespace(cause="a", status=text, log="", more=text)
    made = rendered(failures.__file__, "failures.md.j2", failures=[failure])
    heads = ["what happens", "`minicluster status` says", "the log says", "more"]
    is_table(made, heads, ["a", f'"{text}"', "-", text])


def of_files(text: str) -> None:
    made = rendered(codemap.__file__, "files.md.j2", folder="f", about="", purposes={"a": text, "b": "c"})
    is_table(made.removeprefix("### `f`\n\n"), ["file", "what it is"], ["`a`", text], ["`b`", "c"])


def of_screen(text: str) -> None:
    shown = [line.text for line in ElementTree.fromstring(screen.svg("a", text)) if line.text]
    assert shown == ["$ a", *filter(None, text.splitlines())]


class Parts(HTMLParser):
    """What a browser would read: attributes by their names, and texts by the elements that they are in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: dict[str, list[str]] = {}
        self.texts: dict[str, str] = {}
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = dict(attrs).get("id") or tag
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")

    def handle_data(self, data: str) -> None:
        self.texts[self._inside] = self.texts.get(self._inside, "") + data


def of_picture(text: str) -> None:
    from minicluster.picture import page  # noqa: PLC0415 - Bokeh takes each worker a second

    config = page.in_html({text: text})
    values = {"title": text, "style": "", "policy": text, "library": "", "script": "", "config": config}
    found = Parts(rendered(picture.__file__, "page.html.j2", **values))
    # what is after an element counts for it, too
    assert (found.texts["title"].strip(), found.texts["name"].strip()) == (text.strip(), text.strip())
    assert (json.loads(found.texts["config"]), text in found.attributes["content"]) == ({text: text}, True)
    assert found.attributes["src"] == ["../bokeh.js", "../page.js"]


def of_index(text: str) -> None:
    rows = [{"name": text, "state": text, "size": text, "maxSize": text}]
    values = {"style": "", "place": text, "rows": rows, "trouble": text}
    found = Parts(rendered(picture.__file__, "index.html.j2", **values))
    assert (found.texts["a"].strip(), found.texts["h1"].strip()) == (text.strip(), f"MiniClusters in {text}".strip())
    assert f"{text}/" in found.attributes["href"]


def of_opener(text: str) -> None:
    found = Parts(rendered(pictures.__file__, "open.html.j2", address=text))
    assert found.attributes["content"] == [f"0; url={text}"]


TEMPLATES: dict[str, Callable[[str], None]] = {
    "plugin/minicluster/burst/start.sh.j2": of_machine,
    "plugin/minicluster/burst/minicluster-burst.service.j2": of_unit,
    "benchmarks/bare_files.sh.j2": of_bare_cluster,
    "benchmarks/bare_start.sh.j2": of_bare_start,
    "benchmarks/bare_cluster.sh.j2": of_bare_cluster,
    "benchmarks/broker_steps.sh.j2": of_broker_steps,
    "benchmarks/results.json.j2": of_results,
    "benchmarks/table.md.j2": of_page,
    "tests/chart/fields.md.j2": of_spec,
    "tests/failures.md.j2": of_failures,
    "plugin/minicluster/picture/page.html.j2": of_picture,
    "plugin/minicluster/picture/index.html.j2": of_index,
    "plugin/minicluster/commands/open.html.j2": of_opener,
    "tools/files.md.j2": of_files,
    "tools/screen.svg.j2": of_screen,
}
#: Their holes are numbers, and names of our own.
NUMBERS = {"benchmarks/melt.lammps.j2", "tools/variables.md.j2"}


def test_each_template_is_here() -> None:
    folders = ("plugin/minicluster", "benchmarks", "tools", "tests")
    found = {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.j2")}
    assert found == TEMPLATES.keys() | NUMBERS


@pytest.mark.parametrize("template", TEMPLATES)
@settings(max_examples=20, deadline=None)
# what XML can't have is left out
@given(text=st.text(st.characters(exclude_categories=("Cc", "Cn", "Cs")), min_size=1))
@example(text="a")
@example(text="""it's "quoted" `id` $(id) ${HOME} \\ %n & <b> ; #""")
@example(text="two\nlines\n[Service]\nExecStart=/bin/false")
@example(text="END\n| a | b |\\| \\")
@example(text="{{ 7 * 7 }}{% raw %}{# é #}")
def test_a_hostile_text_stays_data(template: str, text: str) -> None:
    TEMPLATES[template](text)


def test_a_hole_without_a_value_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="'folder' is undefined"):
        rendered(brokers.__file__, "broker_steps.sh.j2")


@pytest.mark.parametrize(
    ("script", "excluded"),
    [
        # `run` is never empty
        (rendered(machines.__file__, "start.sh.j2", start=["flux", "start"]), "SC2115"),
        # the variables are numbers, and what is read is of no interest
        (start.bare_script("bench-bare", 4), "SC2086"),
        (clusters.bare("a", 4), "SC2086"),
        (clusters.bare("a", 4, keeps=True), "SC2086"),
        (brokers.steps(Path("/tmp/a b")), "SC2086,SC2034"),
    ],
    ids=["start.sh", "bare_start.sh", "bare_cluster.sh", "bare_cluster.sh, queue kept", "broker_steps.sh"],
)
def test_the_scripts_are_sound_shell(script: str, excluded: str) -> None:
    assert SHELLCHECK, "`make setup` installs it"
    done = subprocess.run(
        [SHELLCHECK, "--shell=sh", f"--exclude={excluded}", "-"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
