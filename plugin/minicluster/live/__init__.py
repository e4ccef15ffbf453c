"""What the commands for people do with a MiniCluster that runs, through kubectl and Helm."""
