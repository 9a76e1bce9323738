"""What planned runs tell, and runs that tell the most."""
