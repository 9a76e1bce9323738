"""Declaration of a system: its bodies, joints, frames, and their topology.

Start with `system.py`.
May import no other folder of `mechanics`.
"""
