"""Parameters of a system, one array per kind of body, joint and force.

Start with `system.py`.
May import `mechanics/declared`.
"""
