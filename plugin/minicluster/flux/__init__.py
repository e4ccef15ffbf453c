"""Formats of Flux (its RFCs) that need nothing else of the package.

Doors: idset.
"""
