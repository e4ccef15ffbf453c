"""Prints the environment for `diagnostics`, without the values of variables that may be secrets.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import re

#: Set by Flux, Kubernetes, this chart or the shell; all others are the user's
KNOWN_VARIABLES = re.compile(
    r"FLUX_[A-Z_]+|MINICLUSTER_[A-Z_]+|JOB_COMPLETION_INDEX|HOSTNAME|(LD_LIBRARY_|PYTHON|MAN|LUA_)?PATH|LUA_CPATH"
    r"|HOME|USER|LOGNAME|SHELL|SHLVL|TMPDIR|(OLD)?PWD|_|LANG|LC_[A-Z]+|TZ|fluxsocket"
)
SECRET = re.compile(r"TOKEN|SECRET|PASS|KEY|CRED|AUTH|CERT")


def line(name: str, value: str) -> str:
    """Return a line of the environment."""
    is_public = KNOWN_VARIABLES.fullmatch(name) and not SECRET.search(name)
    return f"{name}={value}" if is_public else f"{name}=(not shown)"


if __name__ == "__main__":
    for name in sorted(os.environ):
        print(line(name, os.environ[name]))
