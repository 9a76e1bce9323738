"""Intervals of estimates beyond the linearisation: profiles, posterior samples."""
