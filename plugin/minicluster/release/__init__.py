"""Whole releases: Helm, the manifests that it renders, Argo CD's Applications.

Doors: adopt, caller, created, helm, manifests, oneshot, revisions.
"""
