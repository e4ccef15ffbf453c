"""The site's page of files has the first sentence of each source file."""

import re

import pytest
from support import PACKAGE, ROOT

from tools import codemap, variables

pytestmark = pytest.mark.xdist_group("sources")


def test_the_page_of_files_gets_a_row_for_each_file_and_variable():
    page = codemap.written((ROOT / "docs/explanation/files.md").read_text())
    rows = set(re.findall(r"^\| `([\w./-]+)` \| \S", page, re.MULTILINE))
    names = {path.name for path in codemap.files(ROOT)} - {"__init__.py"}
    assert rows >= names | {each.name for each in variables.variables(PACKAGE) if each.is_shared}
    assert codemap.written("no mark\n") == "no mark\n"


@pytest.mark.parametrize(
    ("name", "text", "purpose"),
    [
        ("a.py", '"""One.\n\nTwo."""\n', "One"),
        ("a.py", '"""a.py [X|Y]: one (RFC 1.2),\ntwo. Three."""\n', "a.py [X|Y]: one (RFC 1.2), two"),
        ("a.sh", "#!/bin/sh\n# shellcheck disable=SC1\n# One,\n# two. Three.\n\n# Four\n", "One, two"),
        ("a.lua", "-- One\nlocal a\n", "One"),
        ("a.go", "// One\n//\n//\ttwo\npackage main\n", "One"),
        ("a.tpl", "{{/*\nOne,\ntwo.\n*/}}\n{{/* Three */}}\n", "One, two"),
        ("a.yaml", "{{- include . -}}\n{{- /* One */ -}}\n# Two\n", "One"),
        ("a.md.j2", "{# One,\ntwo #}\n# Three\n", "One, two"),
        ("a.sh.j2", "#!/bin/sh\n# One\n{# Two #}\n", "One"),
        ("a.yaml", "{{- include . -}}\n{{- if .a }}\n# One\nb: 1\n", "One"),
    ],
)
def test_codemap_takes_the_first_sentence_of_a_file(tmp_path, name, text, purpose):
    (tmp_path / name).write_text(text)
    assert codemap.purpose(tmp_path / name) == purpose


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.py", "import a\n# One\n"), ("a.sh", "#!/bin/sh\nset -e\n# One\n"), ("a.yaml", "a: 1\n# One\n")],
)
def test_codemap_refuses_a_file_that_does_not_say_its_purpose(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=f"{name} does not say what it is for: begin it with a comment"):
        codemap.purpose(tmp_path / name)


def test_codemap_covers_each_folder_of_source_files():
    named = {path.relative_to(ROOT).parts[0] for path in codemap.files(ROOT)}
    assert named == {"benchmarks", "charts", "plugin", "tools"}


def test_variables_are_set_by_assignments_reads_and_loops():
    text = """\
# mc_comment=1 $mc_comment
mc_a=$mc_b mc_c=1
read -r _ mc_d mc_e <"$mc_f"
for mc_g in $mc_h; do echo "${mc_a:-mc_i}$((mc_j + 1))"; done
[ "$mc_k" = mc ]
"""
    assert variables.uses(text) == (
        {f"mc_{letter}" for letter in "acdeg"},
        {f"mc_{letter}" for letter in "abfhijk"},
    )


def test_each_variable_of_the_scripts_is_set_and_read():
    found = variables.variables(PACKAGE)
    assert len(found) > 60
    assert [each.name for each in found if not each.setters or not each.readers] == []
