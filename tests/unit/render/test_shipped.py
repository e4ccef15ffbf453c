"""The programs as a ConfigMap has them."""

import ast
import json

import pytest
from minicluster.pod import programs, without_comments
from minicluster.render.postrender import _parts, programs_of_brokers

#: Of all annotations of an object (apimachinery's TotalAnnotationSizeLimitB)
ANNOTATION_BYTES = 256 << 10
PYTHON = sorted(name for name in programs() if name.endswith(".py"))


def test_lines_that_are_a_comment_alone_stay_at_home() -> None:
    text = "#!/bin/sh\n# why\necho a # b\n  # c\n\nx='#'\n"
    assert without_comments(text) == "#!/bin/sh\necho a # b\n\nx='#'\n"


def test_docstrings_of_modules_and_those_of_one_line_stay_at_home() -> None:
    text = '"""A module.\n\nMore.\n"""\n\nclass A:\n    """An A."""\n\n    def b(self):\n        """Return 1."""\n'
    text += '        return 1\n\n\ndef c():\n    """C."""\n'
    assert without_comments(text) == ('class A:\n\n    def b(self):\n        return 1\n\n\ndef c():\n    """C."""\n')


@pytest.mark.parametrize("name", PYTHON)
def test_a_program_of_python_is_the_same_without_them(name: str) -> None:
    text = programs()[name].read_text()
    assert statements(without_comments(text)) == statements(text)


def statements(text: str) -> str:
    """Return a program's tree without its docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


def test_kubectl_apply_has_room_for_its_copy() -> None:
    sizes = [len(json.dumps({"data": data})) for _, data in _parts("a", programs_of_brokers())]
    assert sum(sizes) > ANNOTATION_BYTES / 2
    assert max(sizes) < ANNOTATION_BYTES - 8192
