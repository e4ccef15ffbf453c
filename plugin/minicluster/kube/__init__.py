"""The port to Kubernetes, and kubectl behind it.

Doors: cron, kubectl, names, outage, port, tool.
"""
