"""A run: its arguments, its steps, what it saved, and how it ended."""
