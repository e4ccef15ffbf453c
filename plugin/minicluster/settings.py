"""A person's settings: what a command takes where nobody says otherwise, and where each comes from.

An option of the command line overrides a variable, which overrides the file, which overrides the default. Values that
are given to a command, in a file or by --set, count as options of it. Neither rendering nor pods read any of it.
"""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from minicluster.errors import MiniClusterError, SettingError

#: The default, where a setting comes from nowhere else
DEFAULT = "default"
SWITCH = {"true": True, "1": True, "false": False, "0": False}


class Setting(NamedTuple):
    """A setting, and what its default means."""

    key: str
    default: str
    path: str = ""  #: of the value that it gives a release
    is_switch: bool = False

    @property
    def variable(self) -> str:
        """The variable of the environment."""
        return f"MINICLUSTER_{self.key.replace('-', '_').upper()}"


SETTINGS = {
    setting.key: setting
    for setting in (
        Setting("namespace", "that of the context"),
        Setting("context", "the kubeconfig's current one"),
        # of the runner, which is one of the containers
        Setting("image", "that of the values"),
        Setting("view-image", "that of the values", "flux.container.image"),
        Setting("image-registry", "each image's own", "global.imageRegistry"),
        Setting("colors", "true", is_switch=True),
    )
}


class ResolvedSetting(NamedTuple):
    """A setting as it is, and what says so: a variable, the file, or the default."""

    value: str | bool | None  #: None: unset
    source: str


def file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the file, which need not be there."""
    folder = environment.get("XDG_CONFIG_HOME", "")
    # by the XDG specification a relative one is ignored
    return Path(folder if folder.startswith("/") else Path("~/.config").expanduser(), "minicluster.toml")


def resolve(environment: Mapping[str, str] = os.environ) -> dict[str, ResolvedSetting]:
    """Return all settings by key. Raises SettingError for a file or a variable that can't be read."""
    path = file(environment)
    given = written(path)
    return {key: _resolved(setting, environment, given.get(key), path) for key, setting in SETTINGS.items()}


def text(key: str) -> str:
    """Return a setting, "" when it is unset. Raises SettingError."""
    return str(resolve()[key].value or "")


def values() -> dict[str, str]:
    """Return what releases get by settings, by the paths of the values. Raises SettingError."""
    each = ((SETTINGS[key].path, one.value) for key, one in resolve().items())
    return {path: str(value) for path, value in each if path and value}


def has_colors() -> bool:
    """Return whether a terminal shows colours. Settings that can't be read are told elsewhere."""
    try:
        return resolve()["colors"].value is not False
    except MiniClusterError:
        return not os.environ.get("NO_COLOR")


def _resolved(setting: Setting, environment: Mapping[str, str], written: Any, path: Path) -> ResolvedSetting:
    if given := environment.get(setting.variable, ""):
        if not setting.is_switch:
            return ResolvedSetting(given, setting.variable)
        if given not in SWITCH:
            raise SettingError(f"{setting.variable} is {given!r}: set it to true or false")
        return ResolvedSetting(SWITCH[given], setting.variable)
    if setting.key == "colors" and environment.get("NO_COLOR"):
        return ResolvedSetting(False, "NO_COLOR")
    return ResolvedSetting(None, DEFAULT) if written is None else ResolvedSetting(written, str(path))


@cache
def written(path: Path) -> dict[str, Any]:
    """Return what the file has; it is read once. Raises SettingError, which names the wrong line or key."""
    try:
        content = path.read_text(encoding="utf-8")
        import tomllib  # noqa: PLC0415 - most people have no file

        given = tomllib.loads(content)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # also of bytes that are not UTF-8
        raise SettingError(f"{path} is not TOML: {error}") from None
    for key, value in given.items():
        if key not in SETTINGS:
            raise SettingError(f"{path}: {key} is no setting: use {', '.join(SETTINGS)}")
        if not isinstance(value, bool if SETTINGS[key].is_switch else str):
            wanted = "true or false" if SETTINGS[key].is_switch else "a text in quotes"
            raise SettingError(f"{path}: {key} is {value!r}: write {wanted}")
    return given
