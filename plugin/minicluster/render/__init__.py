"""The post-renderer that Helm calls: it turns the MiniCluster of a stream into a ConfigMap and a Secret.

Doors: broker, constants, curve, load, model, postrender, refusals.bursts, resources, revision, schema, stream,
upgrade, work.
"""
