"""Kinematics of general motion: screws of displacements and of twists, moving frames."""
