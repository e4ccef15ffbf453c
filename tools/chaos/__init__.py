"""Random troubles on a live MiniCluster: `python -m tools.chaos --help`."""
