"""A run: its arguments, its steps, what it saved, and how it ended.

Start with `simulate.py`, then `arguments.py` and `integration.py`.
May import `adjoints` and lower layers.
"""
