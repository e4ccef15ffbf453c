"""The conversation with the lead: the programs that are sent to it, and how they are asked.

Doors: ask, program.
"""
