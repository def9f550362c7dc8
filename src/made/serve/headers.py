"""What a request says about itself: the type of its body, its parameters, and the type of answer that it wants."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import Request

from made.serve.bodies import ARROW, CSV, JSON
from made.serve.problems import Problem

__all__ = ["check_parameters", "media_type", "wanted"]


def media_type(request: Request, allowed: Collection[str]) -> str:
    """The type of the body, one of those that are allowed."""
    if (coding := request.headers.get("content-encoding", "identity").strip().lower()) != "identity":
        raise Problem("media-type", f"the body is encoded by {coding[:100]!r}.", "Send it without Content-Encoding.")
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in allowed:
        remedy = f"Send {JSON}." if JSON in allowed and len(allowed) == 1 else None
        raise Problem("media-type", f"the body is {found[:100] or 'of no type'}.", remedy)
    return found


def check_parameters(request: Request) -> None:
    """Refuse a parameter that the route does not have: a typing error should not change the question."""
    known = [each.alias for each in request.scope["route"].dependant.query_params]
    if unknown := next((name for name in request.query_params if name not in known), None):
        others = f"the parameters are {', '.join(known)}" if known else "this takes none"
        raise Problem("request", f"there is no parameter {unknown[:200]!r}: {others}.")


def wanted(request: Request) -> str:
    """The type of the answer: the first that the client names. Default: JSON."""
    kinds = (each.partition(";")[0].strip().lower() for each in request.headers.get("accept", "").split(","))
    return next((kind for kind in kinds if kind in (JSON, CSV, ARROW)), JSON)
