"""The port to Kubernetes, and kubectl behind it."""
