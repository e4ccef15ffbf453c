"""Waits for a lead, a quorum or an end, and follows logs meanwhile.

Doors: logs, ready, wait.
"""
