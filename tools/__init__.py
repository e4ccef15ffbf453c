"""What `make` runs, and what tests, benchmarks and tools share. Run a program by `python -m tools.NAME`."""
