"""Functions of time in a model: signals, inputs and controllers.

Start with `signal.py`.
May import nothing of mechanics.
"""
