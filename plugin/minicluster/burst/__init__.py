"""Other clusters and machines that join a root.

Doors: followers, install, machines, removal, root.
"""
