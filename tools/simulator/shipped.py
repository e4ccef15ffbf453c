"""Loads the pods' programs into a world of their own: what they import of time, Flux and the machine is the model's."""

import builtins
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import minicluster
from minicluster.lead.program import SENT
from minicluster.pod import programs

#: The rooms of the package that run in virtual time
ROOMS = ("burst", "kube", "lead", "lifecycle", "release", "status", "waiting")
#: The other modules of a client of the SDK that do
SDK = ("sdk.session", "sdk.requests")


def _of_package() -> Mapping[str, Path]:
    """Return the modules of the commands and of the SDK that run in virtual time, by their names."""
    [package] = map(Path, minicluster.__path__)
    files = [file for room in ROOMS for file in sorted((package / room).glob("*.py")) if file.name != "__init__.py"]
    files += [Path(package, *name.split(".")).with_suffix(".py") for name in SDK]
    return {f"minicluster.{file.parent.name}.{file.stem}": file for file in files}


@cache
def _sources() -> Mapping[str, Path]:
    """Return the programs of the pods, those that clients send there, and the clients' modules, by their names."""
    sent = {path.stem: path for path in SENT.glob("*.py")}
    return {
        **sent,
        **{Path(name).stem: path for name, path in programs().items() if name.endswith(".py")},
        **_of_package(),
    }


@cache
def _compiled(path: Path, change: tuple[str, str] | None) -> CodeType:
    text = path.read_text(encoding="utf-8")
    if change:
        old, new = change
        assert text.count(old) == 1, f"{path.name} has {text.count(old)} times {old!r}"
        text = text.replace(old, new)
    return compile(text, str(path), "exec")


class Machine:
    """What stands for Python's `os`: the environment of a pod, and signals to the model's brokers."""

    def __init__(self, kill: Callable[[int, int], None]) -> None:
        self.kill = kill
        self.environ = {
            "MINICLUSTER_HOME": "/nonexistent",
            "KUBERNETES_SERVICE_HOST": "api",
            "KUBERNETES_SERVICE_PORT": "443",
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


class Programs:
    """The programs of one pod's life, as modules: `programs.agent` is agent.py."""

    def __init__(
        self, stand_ins: Mapping[str, Any], say: Callable[[str], None], changes: Mapping[str, tuple[str, str]]
    ) -> None:
        """Take what stands for other modules by their names, and changes of the programs' text by theirs."""
        self._stand_ins, self._changes = stand_ins, changes
        self._builtins = {**vars(builtins), "__import__": self._import, "print": lambda *words, **_: say(*words)}
        self._loaded: dict[str, ModuleType] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in _sources():
            raise AttributeError(name)
        if name not in self._loaded:
            module = ModuleType(f"simulated.{name}")
            module.__dict__.update(__builtins__=self._builtins, __file__=str(_sources()[name]))
            # dataclasses look their module up
            self._loaded[name] = sys.modules[module.__name__] = module
            exec(_compiled(_sources()[name], self._changes.get(name.rpartition(".")[2])), module.__dict__)  # noqa: S102 - files of ours
        return self._loaded[name]

    def _has(self, name: str) -> bool:
        return name in self._stand_ins or name in _sources()

    def _import(self, name: str, *how: Any) -> Any:
        names = how[2] if len(how) > 2 and how[2] else ()
        if name in self._stand_ins:
            return self._stand_ins[name if names else name.partition(".")[0]]
        if name in _sources():
            return getattr(self, name)
        modules = {each: full for each in names if self._has(full := f"{name}.{each}")}
        if not modules:
            return builtins.__import__(name, *how)
        package = SimpleNamespace(**vars(builtins.__import__(name, *how)))
        vars(package).update({each: self._import(full, None, None, [each]) for each, full in modules.items()})
        return package


class Folder:
    """What stands for the folder of a pod's state: there is no launcher and no work in it."""

    name = ""

    def __truediv__(self, _name: str) -> "Folder":
        return self

    def exists(self) -> bool:
        """Tell that nothing is there."""
        return False

    def glob(self, _pattern: str) -> tuple[()]:
        """Return no files."""
        return ()

    def touch(self) -> None:
        """Do nothing."""

    def with_name(self, _name: str) -> "Folder":
        """Return a file beside it."""
        return self

    def stat(self) -> None:
        """Tell that there is none. Raises OSError."""
        raise FileNotFoundError

    def write_text(self, *_: str, **__: str) -> None:
        """Write nothing."""

    def replace(self, _other: "Folder") -> None:
        """Do nothing."""


def text_file(text: Callable[[], str]) -> SimpleNamespace:
    """Return what stands for a file that is read."""
    return SimpleNamespace(read_text=lambda **_: text())
