"""Intervals of estimates beyond the linearisation: profiles, bootstrap, posterior samples."""
