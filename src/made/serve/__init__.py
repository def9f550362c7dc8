"""Fitted models as services: the page and the HTTP API (the extra `serve`), and tools for assistants (`mcp`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from made.serve.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    """The factory of the application, imported when it is first used: other modules here need no web framework."""
    if name != "create_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from made.serve.app import create_app

    return create_app
