"""A MiniCluster as a picture: its jobs, nodes and sizes over time, on a live page, in an HTML file, on a terminal.

Doors: page, served, top.
"""

import importlib.util

from minicluster.errors import ToolError

#: The extra of this package that has Bokeh
INSTALL_BOKEH = "pip install 'minicluster[dashboard]'"


def check() -> None:
    """Raise ToolError if Bokeh is missing."""
    if not importlib.util.find_spec("bokeh"):
        raise ToolError(f"the picture needs Bokeh, which is not installed: {INSTALL_BOKEH}")
