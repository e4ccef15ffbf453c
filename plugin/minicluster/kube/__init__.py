"""The port to Kubernetes, and kubectl behind it.

Doors: cron, kubectl, kubectl_stream, names, outage, port, tool.
"""
