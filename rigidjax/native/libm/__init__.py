"""Elementary functions of vectors, without a mathematical library."""
