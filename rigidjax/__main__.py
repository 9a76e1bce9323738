"""`python -m rigidjax`, an alternative to the console script."""

from .cli import main

if __name__ == "__main__":
    main()
