"""Poses and motions of bodies and joints."""
