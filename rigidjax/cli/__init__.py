"""The command line, `rigidjax`.

Start with `app.py`.
May import everything; nothing imports it.
"""

from ..extras import import_optional

import_optional("typer", "Commands")

from .app import app as app, main as main  # noqa: E402
