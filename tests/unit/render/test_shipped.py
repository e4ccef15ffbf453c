"""The programs as a ConfigMap has them."""

import ast
import json

import pytest
from minicluster.pod import programs, without_comments
from minicluster.render.programs import of_brokers

#: Of all annotations of an object (apimachinery's TotalAnnotationSizeLimitB)
ANNOTATION_BYTES = 256 << 10
PYTHON = sorted(name for name in programs() if name.endswith(".py"))


def test_lines_that_are_a_comment_alone_stay_at_home() -> None:
    text = "#!/bin/sh\n# why\necho a # b\n  # c\n\nx='#'\n"
    assert without_comments(text) == "#!/bin/sh\necho a # b\n\nx='#'\n"


@pytest.mark.parametrize("name", PYTHON)
def test_a_program_of_python_is_the_same_without_them(name: str) -> None:
    text = programs()[name].read_text()
    assert ast.dump(ast.parse(without_comments(text))) == ast.dump(ast.parse(text))


def test_kubectl_apply_has_room_for_its_copy() -> None:
    size = len(json.dumps({"data": dict(of_brokers())}))
    assert ANNOTATION_BYTES / 2 < size < ANNOTATION_BYTES - 8192
