"""Elementary functions of vectors, without a mathematical library.

Start with `functions.py`.
May import `native/values`.
"""
