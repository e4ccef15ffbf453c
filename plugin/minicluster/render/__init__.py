"""The post-renderer that Helm calls: it turns the MiniCluster of a stream into a ConfigMap and a Secret.

Doors: awaiting, broker, burst_spec, config, constants, curve, hostlist, load, model, postrender, quantity,
refusals.fit, resources, revision, schema, stream, upgrade, work.
"""
