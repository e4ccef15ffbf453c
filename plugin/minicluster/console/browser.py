"""Opens a page in the browser of who sits here, if there is one."""

import os
import sys
import tempfile
import webbrowser
from pathlib import Path

from minicluster.console import streams
from minicluster.console.templates import rendered
from minicluster.errors import OutputError


def has_screen() -> bool:
    """Return whether a browser could show something: one in a terminal would take it."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_page(address: str) -> Path | None:
    """Open an address; return the file that is to be removed later, None if there is no browser.

    The browser gets a file of the user's own that leads there: others see the words of a command, and the address has
    the token.
    """
    if not has_screen():
        return None
    folder = Path(tempfile.mkdtemp(prefix="minicluster-"))
    path = folder / "page.html"
    try:
        streams.write_file(path, rendered(__file__, "open.html.j2", address=address).encode(), 0o600)
        if webbrowser.open(path.as_uri()):
            return path
    except (OutputError, webbrowser.Error):
        pass
    remove(path)
    return None


def remove(path: Path | None) -> None:
    """Remove the file of `open_page`."""
    if path:
        path.unlink(missing_ok=True)
        path.parent.rmdir()
