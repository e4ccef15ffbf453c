"""A MiniCluster as Kubernetes has it: its Job, its pods, its lead; how it is found, and in which state it is.

Doors: find, job, lead, pods, reasons, states, troubles, without_flux.
"""
