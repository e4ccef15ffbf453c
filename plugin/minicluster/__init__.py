"""The post-renderer of the minicluster chart: MiniCluster documents become ConfigMaps and Secrets."""
