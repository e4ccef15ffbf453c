"""A command run at several sizes, several times each: the order of the runs, the results, the plots.

Doors: matrix.
"""
