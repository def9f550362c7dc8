"""The command line, as the tests run it: what it prints, with the exit code that it should have."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from made.cli import app


def run(*arguments, code: int = 0):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if isinstance(result.exception, Exception) and code != 1:
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def run_json(*arguments):
    return json.loads(run(*arguments, "--json").stdout)
