"""Information content of planned runs, and design of informative experiments."""
