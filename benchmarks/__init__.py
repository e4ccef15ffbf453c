"""Measurements. Run one by `python -m benchmarks.NAME`."""
