"""The port to Kubernetes, and what is behind it: kubectl, or the package `kubernetes`."""
