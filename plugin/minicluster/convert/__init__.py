"""flux-operator's MiniCluster as values."""
