"""What Helm calls: a stream of manifests and a MiniCluster in, ConfigMap and Secret out."""
