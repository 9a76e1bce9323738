"""Multiple shooting.

Start with `shooting.py`.
May import `identification/search` and what is below it.
"""
