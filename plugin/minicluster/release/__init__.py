"""Whole releases: Helm, the manifests that it renders, Argo CD's Applications."""
