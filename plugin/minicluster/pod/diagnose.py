"""Prints the environment: of what may be a secret the name alone.

Runs with the Python of the Flux view, 3.8 or later.
"""

from __future__ import annotations

import os
import re

#: What Flux, Kubernetes, this chart and the shell set; all else is the user's
KNOWN = re.compile(
    r"FLUX_[A-Z_]+|MINICLUSTER_[A-Z_]+|JOB_COMPLETION_INDEX|HOSTNAME|(LD_LIBRARY_|PYTHON|MAN|LUA_)?PATH|LUA_CPATH"
    r"|HOME|USER|LOGNAME|SHELL|SHLVL|TMPDIR|(OLD)?PWD|_|LANG|LC_[A-Z]+|TZ|fluxsocket"
)
SECRET = re.compile(r"TOKEN|SECRET|PASS|KEY|CRED|AUTH|CERT")


def shown(name: str, value: str) -> str:
    """Return a line of the environment."""
    known = KNOWN.fullmatch(name) and not SECRET.search(name)
    return f"{name}={value}" if known else f"{name}=(not shown)"


if __name__ == "__main__":
    for name in sorted(os.environ):
        print(shown(name, os.environ[name]))
