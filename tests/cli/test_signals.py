"""Signals as exceptions."""

from __future__ import annotations

import os
import signal
import time

import pytest

from made.cli.signals import handled, reset
from made.errors import Interrupted


@pytest.fixture(autouse=True)
def _default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    reset()


def run(module: str, done: list[str]) -> None:
    """The body of a module, in which a signal is received, and what follows."""
    source = "os.kill(os.getpid(), signal.SIGINT)\ndone.append('the rest of the module')"
    exec(compile(source, module, "exec"), {"os": os, "signal": signal, "done": done})
    time.sleep(10)
    done.append("all that follows")


def received_in(module: str) -> list[str]:
    """What is done after a signal in the body of a module."""
    done: list[str] = []
    with handled(), pytest.raises(Interrupted, match="interrupted"):
        run(module, done)
    return done


def test_a_signal_is_an_exception_where_it_is_received() -> None:
    assert received_in(os.path.join(os.sep, "elsewhere", "module.py")) == []


def test_a_signal_waits_for_the_end_of_an_import_of_torch() -> None:
    assert received_in(os.path.join(os.sep, "torch", "module.py")) == ["the rest of the module"]
