"""Multiple shooting."""
