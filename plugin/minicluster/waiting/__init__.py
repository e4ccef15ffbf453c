"""Waits for a lead, a quorum or an end, and follows logs meanwhile.

Doors: loglines, logs, ready, wait.
"""
