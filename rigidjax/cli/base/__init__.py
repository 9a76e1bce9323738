"""Checks, choices, messages and plugins of commands and of case files.

Start with `choices.py`.
May import everything but the rest of `cli`.
"""
