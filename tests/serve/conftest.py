"""Fixtures of the tests of `made serve`; without the extra, they are skipped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

for name in ("fastapi", "uvicorn", "prometheus_client", "httpx"):
    pytest.importorskip(name, reason=f"{name} is not installed: pip install 'made[serve,dev]'")
sys.path.insert(0, str(Path(__file__).parent))

from server import live  # noqa: E402

from pages import chromium, page, pages  # noqa: E402, F401


@pytest.fixture(scope="package")
def server():
    with live() as found:
        yield found
