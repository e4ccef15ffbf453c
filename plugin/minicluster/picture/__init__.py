"""A MiniCluster as a picture: its jobs, nodes and sizes over time, on a live page, in an HTML file, on a terminal.

Doors: figures, html_export, served, top.
"""
