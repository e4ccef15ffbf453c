"""How the commands work on a live MiniCluster, through kubectl and Helm."""
