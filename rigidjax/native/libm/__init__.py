"""Elementary and special functions of vectors, without a mathematical library."""
