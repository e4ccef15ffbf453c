"""Other clusters and machines that join a root."""
