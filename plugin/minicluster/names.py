"""Patterns of the names that Kubernetes accepts (RFC 1123)."""

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
#: The most characters of a label, such as the name of a Service, a host or a namespace.
NAME_CHARACTERS = 63
