"""Other clusters and machines that join a root.

Doors: address, followers, install, machines, plan, root.
"""
