"""Arrays of bodies, joints and forces."""
