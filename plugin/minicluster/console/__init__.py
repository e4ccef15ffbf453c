"""What a person sees and types: standard streams, what a terminal shows, signals, words of messages.

Doors: lines, messages, signals, streams, templates, terminal.
"""
