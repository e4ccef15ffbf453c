"""A program of a user of the SDK as forks.py starts it: its text is the first word."""

import sys
from types import ModuleType

import minicluster.sdk
import minicluster.sdk.session  # noqa: F401


def main() -> None:
    """Run the text, whose functions can be pickled by their names."""
    sys.modules["__main__"] = program = ModuleType("__main__")
    exec(sys.argv.pop(1), vars(program))
