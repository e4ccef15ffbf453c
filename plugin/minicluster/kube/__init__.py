"""The port to Kubernetes, and kubectl behind it.

Doors: kubectl, kubectl_stream, names, outage, port, tool.
"""
