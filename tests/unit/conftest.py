"""The programs of the pods can be imported, as they import each other: by their file names."""

import sys

from support import PACKAGE

sys.path.append(str(PACKAGE / "pod"))
