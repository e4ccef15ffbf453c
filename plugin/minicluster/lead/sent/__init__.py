"""Programs of ours that run on the lead, with the Python of its Flux view: they are sent as text."""
