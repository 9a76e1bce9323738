"""Measurements from arrays and files.

Start with `measurements.py`.
May import the top modules of `identification`.
"""
