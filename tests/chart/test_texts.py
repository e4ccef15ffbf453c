"""Any text of the values reaches the objects unchanged."""

import json
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from renderings import app, cluster, pod, runner
from support import CHART, Helm, as_container_sees, values_text

TEXT = st.text(
    st.characters(codec="utf-8", min_codepoint=32, exclude_categories=["Cc"], exclude_characters="\ufffe\uffff")
    | st.sampled_from("\t\n")
)
NASTY = [
    *("=", "<<", "~", "null", "yes", "no", "on", "true", "012", "0o7", "0x1F", "1e3", "1_000", "1:30", "1.10", ".5"),
    *(".", "2001-02-03", "2001-99-99", "0000-00-00", "2001-02-03 04:05:06", ".inf", "-.INF", ".nan", "+1", "-", "--"),
    *("---", "...", "", " ", "  lead", "trail  ", "a\nb", "\n", "\n\na\n\n", "  indented\nfirst", "\n  second", "\t"),
    *("\tx\ty ", "a \nb\t\n", "'", '"', "''", "\\", "\\n", "a: b", "a #b", "# c", "- a", "? a", "{a}", "[a]"),
    *("{{ .Values }}", "{{", "}}", "%a", "@a", "!!str a", "!a", "&a", "*a", "|", ">", "|-\n a", "`id`", "$HOME"),
    *("$(NAME)", "$$", "$$(NAME)", "$", "${A}", "<b>&", ",", "é", "日本", "🚀", "\u00a0", "\u200b", "x" * 3000),
    *("word " * 60, "---\na: b", "\n---\n", "EOF", "y" * 63),
]
TEXTS = st.sampled_from(NASTY) | TEXT


def check_texts(helm: Helm, texts: list[str]) -> None:
    """Render texts in each field that can have one, and compare them in the objects."""
    environment = {f"V{index}": text for index, text in enumerate(texts)}
    lines = [text for text in texts if "\n" not in text and "\t" not in text]
    # a quote that is not closed is refused
    words = [shlex.quote(text) for text in lines]
    values = {
        "containers": [
            {
                "command": texts,
                "environment": environment,
                "commands": {
                    "init": texts[0],
                    "pre": texts[-1],
                    "brokerPre": "\n".join(texts),
                    "prefix": words[0] if words else "",
                },
                "workingDir": f"/{lines[-1]}" if lines else "",
            }
        ],
        "flux": {"environment": environment, "optionFlags": words[-1] if words else ""},
        "pod": {"annotations": {f"a/v{index}": text for index, text in enumerate(texts)}},
    }
    text = helm.template(values=values)
    spec = cluster(text).spec
    assert spec["containers"] == values["containers"]
    assert spec["flux"]["environment"] == environment
    assert spec["flux"]["optionFlags"] == values["flux"]["optionFlags"]
    assert spec["pod"]["annotations"] == values["pod"]["annotations"]
    assert {key: pod(text)["metadata"]["annotations"].get(key) for key in values["pod"]["annotations"]} == values[
        "pod"
    ]["annotations"]
    container = app(text)
    seen = {
        variable["name"]: as_container_sees(variable["value"]) for variable in container["env"] if "value" in variable
    }
    assert {name: seen[name] for name in environment} == environment
    assert container.get("workingDir", "") == values["containers"][0]["workingDir"]


@pytest.mark.parametrize("some", [NASTY[0::2], NASTY[1::2]], ids=["even", "odd"])
def test_difficult_texts_reach_the_objects_unchanged(helm: Helm, some: list[str]) -> None:
    check_texts(helm, some)


@pytest.mark.parametrize("text", ["\u009f", "\uffff", "a\u0085b"])
def test_a_text_that_yaml_can_not_hold_is_refused(helm: Helm, text: str) -> None:
    values = values_text(runner(environment={"A": text}))
    done = helm.run("template", "x", CHART, "--post-renderer", "minicluster", "--values", "-", stdin=values)
    assert done.code != 0
    shown = json.dumps(text)
    assert f"MiniCluster x: containers[0].environment.A is {shown}: must have no control characters" in done.err


@pytest.mark.parametrize("name", ["helm", "helm3"])
@given(texts=st.lists(TEXTS, min_size=25, max_size=150))
@settings(max_examples=4)
def test_any_text_reaches_the_objects_unchanged(both: dict[str, Helm], name: str, texts: list[str]) -> None:
    check_texts(both[name], texts)


@pytest.fixture(scope="module")
def both(helm3: Helm, helm4: Helm) -> dict[str, Helm]:
    return {"helm": helm4, "helm3": helm3}
