"""Waits for a lead, a quorum or an end, and follows logs meanwhile.

Doors: lead_log, loglines, logs, ready, wait.
"""
