"""What runs, as `minicluster status` shows it."""
