"""Programs that `make` runs, and modules that tests, benchmarks and tools share. Run one by `python -m tools.NAME`."""
