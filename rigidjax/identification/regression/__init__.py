"""Linear regression of inertial parameters."""
