"""Checks that readers and writers share."""

from __future__ import annotations

import pytest

from made.errors import DataError
from made.io.checks import limit_bytes


def test_the_limit_is_4_gib_or_what_the_environment_says(monkeypatch) -> None:
    monkeypatch.delenv("MADE_MAX_BYTES", raising=False)
    assert limit_bytes() == 2**32
    monkeypatch.setenv("MADE_MAX_BYTES", "12")
    assert limit_bytes() == 12
    for wrong in ("0", "-1", "4G", "1e9", "²", "9" * 5000):
        monkeypatch.setenv("MADE_MAX_BYTES", wrong)
        with pytest.raises(DataError, match="MADE_MAX_BYTES should be a whole number of bytes"):
            limit_bytes()
