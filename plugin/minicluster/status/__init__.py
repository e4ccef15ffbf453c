"""What a MiniCluster is like, and why: found, read, and shown as a table, a document or sentences.

Doors: document, listing, lookup, reported, reporter, simulated, table, used, why.
"""
