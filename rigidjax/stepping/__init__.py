"""Runs that are advanced one period at a time, for environments, learning and control."""
