"""The command line, `rigidjax`."""

from .app import app as app, main as main
