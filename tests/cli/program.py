"""Calls of the command line, and its messages for invalid input."""

import re

from typer.testing import CliRunner

from rigidjax.cli import app


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def good(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def refusal(*arguments, code=2):
    """Return the text on the error stream; nothing else may be printed or raised."""
    result = call(*arguments)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("Error: ")
    return " ".join(result.stderr.split())


def assert_refused(message, *arguments, code=2):
    text = refusal(*arguments, code=code)
    assert re.search(message, text), text
