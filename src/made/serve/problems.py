"""Errors as problem documents (RFC 9457): what is wrong, where, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from made.errors import DataError, MadeError, ParameterError, QuestionError, is_out_of_memory

__all__ = ["Problem", "problem_of"]

PROBLEM = "application/problem+json"
LONGEST = 4000  # characters of a sentence

# The name of a problem, its status, its title, and what to do about it unless the error says more.
KINDS = {
    "data": (422, "The rows cannot be used", "Correct the value, or give null for a missing value."),
    "question": (422, "The question cannot be answered", "Ask for columns and values that the model has (…/columns)."),
    "request": (422, "The request is malformed", "Compare it with /openapi.json."),
    "too-many-rows": (422, "Too many rows", "Send fewer rows at a time, or raise the limit of the server."),
    "too-many-columns": (422, "Too many columns", "Send the columns of the model (…/columns) only."),
    "too-many-samples": (422, "Too many samples", "Ask for fewer at a time, or raise the limit of the server."),
    "body-too-large": (413, "The body is too large", "Send fewer rows at a time, or raise the limit of the server."),
    "body-too-slow": (408, "The body did not arrive in time", "Send it again, faster or in parts."),
    "media-type": (415, "The body has a type that is not read", "Send JSON, CSV, Parquet or an Arrow stream."),
    "http": (400, "The request is not HTTP/1.1", "Use a client that speaks HTTP/1.1."),
    "token": (401, "A token is needed", "Send the header 'Authorization: Bearer TOKEN'."),
    "host": (421, "The server does not answer to this host", "Use its address, or start it with --allow-host."),
    "origin": (403, "Another site made this request", "Use the page of the server itself."),
    "not-found": (404, "There is no such page", "See /openapi.json, and /api/models for the names of the models."),
    "method": (405, "The method is not allowed here", "See /openapi.json."),
    "busy": (429, "Too many requests are waiting", "Try again after the seconds in Retry-After."),
    "full": (503, "Too many connections are open", "Close some, or try again after the seconds in Retry-After."),
    "late": (503, "The answer took too long", "Ask for less at a time, or try again."),
    "stopping": (503, "The server is stopping", "Try again after the seconds in Retry-After."),
    "memory": (503, "There is not enough memory", "Ask for less at a time."),
    "gone": (499, "The client has left", "Stay."),
    "internal": (500, "Internal error", "Please report it."),
}
CAUSES = {DataError: "data", ParameterError: "request"}
ROWS = "Send rows with the columns of the model (…/columns); empty fields, and null, are missing values."
RETRY_AFTER = {"busy": 1, "full": 1, "late": 5, "stopping": 10, "memory": 5}


class Problem(Exception):  # noqa: N818
    """A request that is refused.

    Arguments:
        kind: a name among :data:`KINDS`.
        detail: what is wrong, a sentence.
        remedy: what to do about it. Default: the remedy of the kind.
        facts: more members of the document, such as ``row`` and ``column``.
    """

    def __init__(self, kind: str, detail: str, remedy: str | None = None, **facts: Any) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.facts = kind, detail, facts
        self.status, self.title, usual = KINDS[kind]
        self.remedy = usual if remedy is None else remedy

    @property
    def headers(self) -> dict[str, str]:
        """Those that belong to the status."""
        found = {"Retry-After": str(RETRY_AFTER[self.kind])} if self.kind in RETRY_AFTER else {}
        return found | ({"WWW-Authenticate": "Bearer"} if self.kind == "token" else {})

    def document(self) -> dict[str, Any]:
        """The members of the document."""
        facts = {name: value for name, value in self.facts.items() if value is not None}
        about = {"type": f"urn:made:{self.kind}", "title": self.title, "status": self.status}
        return about | {"detail": self.detail[:LONGEST], "remedy": self.remedy} | facts

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        """The answer to the request."""
        content = json.dumps(self.document(), ensure_ascii=False).encode(errors="replace")
        return Response(content, self.status, {**self.headers, **(headers or {})}, PROBLEM)


def problem_of(error: BaseException) -> Problem:
    """An error as a problem; only what is not the caller's fault is internal."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, MadeError):
        kind = next((name for cause, name in CAUSES.items() if isinstance(error, cause)), "question")
        place = error.place if isinstance(error, QuestionError) else None
        where = None if place is None else list(place)
        remedy = ROWS if kind == "data" and error.row is None and error.column is None else None
        facts = {"row": error.row, "column": error.column, "argument": error.argument, "place": where}
        return Problem(kind, str(error), remedy, **facts)
    if is_out_of_memory(error):
        return Problem("memory", "there is not enough memory for this request.")
    # Arguments that the queries refuse, and what pyarrow cannot read.
    if isinstance(error, (ValueError, OverflowError, RecursionError)):
        return Problem("request", str(error) or type(error).__name__)
    return Problem("internal", f"{type(error).__name__}.")
