"""What Kubernetes takes for a name (RFC 1123)."""

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
#: Characters of a label, of which Services, hosts and namespaces have one.
MAX_NAME = 63
