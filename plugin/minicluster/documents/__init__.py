"""YAML as Helm and Kubernetes read it, within limits.

Doors: yamlio.
"""

#: Levels of lists and maps in a document; Python's own limit of nested calls allows some hundreds.
DEPTH_LEVELS = 100
#: The byte-order mark, with which editors of Windows begin a file
BYTE_ORDER_MARK = "\ufeff"
