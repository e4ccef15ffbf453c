"""YAML as Helm and Kubernetes read it, within limits.

Doors: limits, yamlio.
"""
