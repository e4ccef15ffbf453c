"""A deterministic simulator: the pods' own programs against models of Kubernetes and Flux, in virtual time.

The agent with its scaler, the undrainer with its losses, and the leaving pods are the files that ship, unchanged. The
Job controller, the kubelet, the API server and Flux are models. A seed repeats a run exactly.
"""
