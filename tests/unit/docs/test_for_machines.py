"""What programs read: the site as Markdown with llms.txt, and the skill of agents."""

import os
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import jsonschema_rs
import pytest
import yaml
from minicluster.commands import json_keys
from support import ROOT

from tools import site_markdown, skill

DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md"))
pytestmark = pytest.mark.xdist_group("sources")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]+)(?:#[^)\s]*)?\)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a site in which Sphinx has made the pages."""
    folder = tmp_path_factory.mktemp("site")
    for name in PAGES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    env = SimpleNamespace(found_docs=set(PAGES), doc2path=lambda name: DOCS / f"{name}.md")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "DOCS_MERMAID", "/there")
        patch.delenv("DOCS_FILES", raising=False)
        config = runpy.run_path(str(DOCS / "conf.py"))
    config["write_markdown"](SimpleNamespace(env=env, outdir=str(folder)), None)
    return folder


def test_each_page_is_markdown_whose_links_lead_to_others(site: Path) -> None:
    written = {str(path.relative_to(site).with_suffix("")): path.read_text() for path in site.rglob("*.md")}
    assert sorted(written) == PAGES
    broken = {
        f"{name}: {target}"
        for name, text in written.items()
        for target in LINK.findall(text)
        # Sphinx copies the images
        if not Path(os.path.normpath(site / name / ".." / target)).exists()
        and not (DOCS / "images" / Path(target).name).is_file()
    }
    assert broken == set()
    assert [
        name for name, text in written.items() if re.search(r"^```{(?!mermaid)|<!-- made -->", text, re.MULTILINE)
    ] == []
    assert "### `minicluster burst hosts`\n\n```text\nUsage: " in written["reference/commands"]
    assert "#### `wait(self, until: Literal['quorum', 'end'] = 'quorum', timeout" in written["reference/sdk"]
    assert "#### `nodes: int`\n\n``size`` of the values\n" in written["reference/sdk"]


def test_the_site_has_the_schemas_of_the_json_of_commands(site: Path) -> None:
    names = skill.with_json()
    assert sorted(path.name for path in (site / "schemas" / "v1").iterdir()) == sorted(f"{name}.json" for name in names)
    for name in names:
        assert json_keys.schema(name)["title"].partition("minicluster ")[2].split()[0] == name
        jsonschema_rs.meta.validate(json_keys.schema(name))


def test_llms_txt_has_each_page_once(site: Path) -> None:
    text = (site / "llms.txt").read_text()
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    assert re.fullmatch(r"# minicluster\n\n> For people who .+\.\n\nEach page .+\.\n\n", head)
    entries = [
        re.fullmatch(r"- \[([^\]]+)\]\((\S+)\.md\): \S.*", line)
        for part in sections
        for line in part.split("\n")[2:-1]
        if line
    ]
    assert all(entries)
    assert sorted([*(entry[2] for entry in entries if entry), "index"]) == PAGES
    assert text.count("\n## ") == len(site_markdown.TREE.findall((DOCS / "index.md").read_text())) + 1


def test_a_page_is_as_its_source_but_for_what_sphinx_makes() -> None:
    tree = "```{toctree}\n:hidden:\n:caption: Start\n\na/b\n```\n"
    index = f"# One\n\nFor [all](a/b.md) of\nyou. More.\n\n{tree}"
    below = "# `b`\n\nUse e.g. 3.8: it. More.\n\n![c](../images/c.svg)\n"
    assert site_markdown.written({"index": index, "a/b": below, "c": "# C\n\nD.\n"}) == {
        "index.md": "# One\n\nFor [all](a/b.md) of\nyou. More.\n",
        "a/b.md": below.replace("../images/", "../_images/"),
        "c.md": "# C\n\nD.\n",
        "llms.txt": f"# One\n\n> For all of you. More.\n\n{site_markdown.EACH_PAGE}\n\n"
        "## Start\n\n- [`b`](a/b.md): Use e.g. 3.8: it.\n\n## Optional\n\n- [C](c.md): D.\n",
    }
    with pytest.raises(ValueError, match="a page must begin with a title and a paragraph: 'Text"):
        site_markdown.opening("Text.\n")


def test_the_skill_has_the_commands_of_today() -> None:
    text = skill.SKILL.read_text(encoding="utf-8")
    assert skill.written(text) == text, "run python -m tools.skill"
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["name"] == skill.SKILL.parent.name
    assert len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500
    # an agent has the skill without the repository
    assert LINK.findall(text) == []
    assert len(re.findall(r"^- `minicluster \w+`: [A-Z]\S* .*\.$", text, re.MULTILINE)) == len(skill.all_commands())
