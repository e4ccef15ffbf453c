"""A MiniCluster as a picture: its jobs, nodes and sizes over time, on a live page, in an HTML file, on a terminal.

Doors: answers, feed, figures, html_export, job_history, pages, place, served, top_view.
"""
