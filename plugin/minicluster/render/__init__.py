"""The post-renderer that Helm calls: it turns the MiniCluster of a stream into a ConfigMap and a Secret."""
