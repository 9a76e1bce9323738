"""Measurements from arrays and files.

Start with `measurements.py`.
May import `identification/experiment`.
"""
