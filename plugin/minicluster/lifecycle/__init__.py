"""What changes a MiniCluster as a whole: creates, scales, replaces and deletes it.

Doors: creation, deletion, replace, scaling, temporary.
"""
