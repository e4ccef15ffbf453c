"""Programs that are sent to the lead as text, and run there with the Python of its Flux view."""
