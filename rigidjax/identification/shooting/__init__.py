"""Multiple shooting.

Start with `shooting.py`.
May import `identification/search` and lower layers.
"""
