"""The bodies of requests and answers, for validation and for `/openapi.json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from made.serve.bodies import ARROW, CSV, JSON, PARQUET, Row, RowsBody
from made.serve.problems import PROBLEM

__all__ = ["ConditionalsBody", "ProbabilityBody", "SampleBody", "json_body", "problems", "rows_answer", "rows_body"]
__all__ += ["Absent", "Given", "Level", "Seed"]

Seed = Annotated[int | None, Field(ge=0, lt=2**32, description="Random seed. Default: the model's.")]
Level = Annotated[float, Field(ge=0, le=1)]
Given = Annotated[Row, Field(description="Values by column; null for one that is not known.")]
Absent = Annotated[
    Literal["error", "missing"], Field(description="Columns of the model that the body does not have: refuse, or fill.")
]
STRICT = ConfigDict(extra="forbid", strict=True)

TEXT = {"type": "string"}
NUMBER = {"anyOf": [{"type": "number"}, {"type": "null"}, {"enum": ["Infinity", "-Infinity"]}]}
VALUE = {"anyOf": [{"type": kind} for kind in ("number", "string", "boolean", "null")]}
STATUSES = {
    401: "A token is needed.",
    403: "Another site made this request.",
    404: "There is no such model.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body has a type that is not read.",
    421: "The server does not answer to this host.",
    422: "The request cannot be answered.",
    429: "Too many requests are waiting.",
    503: "The answer took too long, too many connections are open, or the server is stopping.",
}


class ConditionalsBody(BaseModel):
    """What is given."""

    model_config = STRICT

    given: Given = {}
    quantiles: Annotated[
        list[Level], FailFast(), Field(max_length=100, description="Levels of the quantiles of numbers.")
    ] = [
        0.05,
        0.5,
        0.95,
    ]


class SampleBody(BaseModel):
    """How many rows to draw, and what is given."""

    model_config = STRICT

    count: Annotated[int, Field(ge=1, description="Number of rows.")] = 1
    given: Given = {}
    temperature: Annotated[float, Field(ge=0.001, le=1000, description="Below 1 for more likely values.")] = 1.0
    random_state: Seed = None


class ProbabilityBody(BaseModel):
    """A question in the language of `made ask`."""

    model_config = STRICT

    question: Annotated[str, Field(max_length=10_000, description="CONDITION | GIVEN")]
    samples: Annotated[int, Field(ge=2, description="Paths of an estimate.")] = 4096
    random_state: Seed = None


def json_body(kind: type[BaseModel]) -> dict[str, Any]:
    """The documentation of a body of JSON."""
    return {"requestBody": {"required": True, "content": {JSON: {"schema": kind.model_json_schema()}}}}


def rows_body() -> dict[str, Any]:
    """The documentation of a body of rows."""
    content: dict[str, Any] = {JSON: {"schema": RowsBody.model_json_schema()}, CSV: {"schema": {"type": "string"}}}
    content |= {kind: {"schema": {"type": "string", "format": "binary"}} for kind in (PARQUET, ARROW)}
    return {"requestBody": {"required": True, "content": content}}


def rows_answer(**facts: Any) -> dict[int | str, dict[str, Any]]:
    """The documentation of an answer of rows; ``facts`` are schemas of more members of the JSON document."""
    rows = {"type": "array", "items": {"type": "object", "additionalProperties": VALUE}}
    counts, names = ({"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "array", "items": TEXT})
    more = {"unseen": counts, "rounded": counts, "absent": names, "ignored": names, **facts}
    document = {"type": "object", "properties": {"rows": rows, **more}, "required": ["rows"]}
    content = {
        JSON: {"schema": document},
        CSV: {"schema": {"type": "string"}},
        ARROW: {"schema": {"type": "string", "format": "binary"}},
    }
    return {200: {"description": "The rows.", "content": content}} | problems()


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documentation of problems, of some statuses or all."""
    members = {"type": TEXT, "title": TEXT, "status": {"type": "integer"}, "detail": TEXT, "remedy": TEXT}
    members |= {"row": {"type": "integer"}, "column": TEXT}
    schema = {"type": "object", "properties": members, "required": ["type", "title", "status", "detail", "remedy"]}
    return {
        status: {"description": text, "content": {PROBLEM: {"schema": schema}}}
        for status, text in STATUSES.items()
        if not statuses or status in statuses
    }
