"""A person's settings: the order in which they count, what is refused, and which commands take them."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from minicluster import settings
from minicluster.commands import flux, options, setup
from minicluster.console import terminal
from minicluster.errors import SettingError
from minicluster.release.created import CreateReleaseOptions, value_words
from minicluster.release.oneshot import Oneshot, planned
from minicluster.settings import ResolvedSetting
from support import as_in_schema

FILE = """
namespace = "hpc"
image = "python:3"
view-image = "view:1"
image-registry = "reg.example/m"
colors = false
"""


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a person who has no variables."""
    for setting in settings.SETTINGS.values():
        monkeypatch.delenv(setting.variable, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "minicluster.toml"


def test_a_variable_overrides_the_file_which_overrides_the_default(path: Path) -> None:
    path.write_text(FILE, encoding="utf-8")
    given = {"XDG_CONFIG_HOME": str(path.parent), "MINICLUSTER_IMAGE": "mine", "MINICLUSTER_COLORS": "1"}
    assert settings.resolve(given) == {
        "namespace": ResolvedSetting("hpc", str(path)),
        "context": ResolvedSetting(None, "default"),
        "image": ResolvedSetting("mine", "MINICLUSTER_IMAGE"),
        "view-image": ResolvedSetting("view:1", str(path)),
        "image-registry": ResolvedSetting("reg.example/m", str(path)),
        "colors": ResolvedSetting(True, "MINICLUSTER_COLORS"),
    }
    for variables, colors in (({"NO_COLOR": "1"}, "NO_COLOR"), ({"NO_COLOR": "1"} | given, "MINICLUSTER_COLORS")):
        assert settings.resolve(variables)["colors"].source == colors


@pytest.mark.parametrize("folder", [None, "", "relative"])
def test_the_file_is_in_the_folder_of_the_xdg_specification(folder: str | None) -> None:
    given = {} if folder is None else {"XDG_CONFIG_HOME": folder}
    assert settings.file(given) == Path("~/.config/minicluster.toml").expanduser()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name = 'x'", "name is no setting: use namespace, context, image, view-image, image-registry, colors"),
        ("namespace = 3", "namespace is 3: write a text in quotes"),
        ("colors = 'no'", "colors is 'no': write true or false"),
        ("[image]\na = 1", "image is {'a': 1}: write a text in quotes"),
    ],
)
def test_what_the_file_can_not_have_is_refused_by_its_key(path: Path, text: str, why: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingError) as raised:
        settings.resolve()
    assert str(raised.value) == f"{path}: {why}"
    assert settings.has_colors()  # also where the error is shown


def test_a_file_that_is_none_is_refused_in_one_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b"namespace =", b"\xff\xfe"):
        path.write_bytes(data)
        with pytest.raises(SettingError, match=r"minicluster\.toml is not TOML: .+"):
            settings.resolve()
    path.unlink()
    path.mkdir()
    with pytest.raises(SettingError, match=r"minicluster\.toml: Is a directory"):
        settings.resolve()
    path.rmdir()
    monkeypatch.setenv("MINICLUSTER_COLORS", "maybe")
    with pytest.raises(SettingError, match="MINICLUSTER_COLORS is 'maybe': set it to true or false"):
        settings.resolve()


@click.command
@options.namespace("")
@options.context()
@click.option("--root-namespace", default="", callback=options.place)
def where(**given: str) -> None:
    """Print what a command is given."""
    click.echo(json.dumps(given))


def test_an_option_overrides_the_settings(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(FILE, encoding="utf-8")
    monkeypatch.setenv("MINICLUSTER_CONTEXT", "far")

    def asked(*words: str) -> Any:
        return json.loads(CliRunner().invoke(where, words, catch_exceptions=False).output)

    assert asked() == {"namespace": "hpc", "context": "far", "root_namespace": "hpc"}
    assert asked("-n", "a", "--context=b", "--root-namespace=c") == {
        "namespace": "a",
        "context": "b",
        "root_namespace": "c",
    }
    assert [flux.read("sinfo", words)[1:3] for words in ([], ["--namespace=a"])] == [("hpc", "far"), ("a", "far")]


def test_a_release_has_what_the_settings_say_unless_it_is_asked_for(path: Path) -> None:
    path.write_text(FILE, encoding="utf-8")
    usual = {
        "flux.container.image": "view:1",
        "global.imageRegistry": "reg.example/m",
        "containers[0].image": "python:3",
    }
    assert given(value_words(CreateReleaseOptions("a"))) == {"report.log": True, **usual}
    own = {"containers": [{"image": "x"}], "flux": {"container": {"image": "y"}}, "global": {"imageRegistry": "z"}}
    assert given(value_words(CreateReleaseOptions("a", values=own))) == {"report.log": True}
    run = given(planned(Oneshot("a", image="mine", command=["x"]))[1])
    assert {key: run[key] for key in usual} == {**usual, "containers[0].image": "mine"}
    assert given(value_words(CreateReleaseOptions("a", chart="another"))) == {"report.log": True}


def given(words: list[str]) -> dict[str, Any]:
    """Return the values that words of Helm set."""
    pairs = (word.removeprefix("--set-json=").partition("=") for word in words if word.startswith("--set-json="))
    return {path: json.loads(text) for path, _, text in pairs}


def test_config_shows_each_setting_and_where_it_comes_from(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = CliRunner().invoke(setup.config_command, [])
    assert (shown.exit_code, shown.stderr) == (0, f"minicluster: there is no {path}\n")
    path.write_text('namespace = "hpc"', encoding="utf-8")
    settings.written.cache_clear()
    monkeypatch.setenv("MINICLUSTER_COLORS", "false")
    assert CliRunner().invoke(setup.config_command, []).output == (
        "SETTING          VALUE                          FROM\n"
        f'namespace        "hpc"                          {path}\n'
        "context          the kubeconfig's current one   default\n"
        "image            that of the values             default\n"
        "view-image       that of the values             default\n"
        "image-registry   each image's own               default\n"
        "colors           false                          MINICLUSTER_COLORS\n"
    )
    as_json = as_in_schema("config", json.loads(CliRunner().invoke(setup.config_command, ["-o", "json"]).output))
    assert (as_json["file"], list(as_json["settings"])) == (str(path), list(settings.SETTINGS))
    assert as_json["settings"]["context"] == {"value": None, "from": "default"}
    assert "\033[3" not in terminal.drawn("[x]", 20)
