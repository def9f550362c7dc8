"""The tools of an assistant: each query of a model with a description, schemas that have its columns, and bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from made.ask.expressions import Comparison
from made.display import visible
from made.serve.arguments import row_schema
from made.serve.assistant import MOST_COLUMNS, Assistant

__all__ = ["Tool", "instructions", "tools_of"]

MOST_ENTRIES = 20_000  # of an answer: rows times columns
MOST_ROWS = 100
MOST_QUESTIONS = 20
MOST_LISTED = 200  # columns, that the schema of an argument lists
LONGEST_QUESTION = 2000  # characters
SEED = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1, "description": "Random seed. Default: the model's."}
TEXT = {"type": "string"}
NUMBER = {"type": ["number", "string", "null"], "description": "'-Infinity' if it is impossible."}
OBJECTS = {"type": "array", "items": {"type": "object"}}


@dataclass(frozen=True)
class Tool:
    """A query: what it is called, how it is described, and what it takes and gives.

    Attributes:
        title: for people.
        description: for the assistant.
        arguments: the JSON Schema of its arguments.
        answer: the JSON Schema of its answer.
        example: arguments with which it works.
        run: the query: arguments to an answer.
    """

    title: str
    description: str
    arguments: dict[str, Any]
    answer: dict[str, Any]
    example: dict[str, Any]
    run: Callable[..., dict[str, Any]]


def instructions(assistant: Assistant) -> str:
    """What an assistant should know before it calls a tool."""
    names = assistant.names
    listed = ", ".join(map(visible, names[:30])) + (", ..." if len(names) > 30 else "")
    return (
        f"A probability model of a table, {assistant.name!r}, with {len(names)} columns ({listed}), fitted to "
        f"{assistant.model.config.data.rows} rows. It has no rows of the table, only their joint distribution: every "
        "answer is a probability or a draw under the model, so say 'the model estimates'. Call info first for the "
        "exact names, kinds and values of columns. Then: ask for the probability of a condition, predict for the "
        "distribution of a column, sample for typical rows, impute to fill unknown values, score and explain to judge "
        "rows that you have. Names and values are case-sensitive. An unknown value is left out, not guessed."
    )


def tools_of(assistant: Assistant) -> dict[str, Tool]:
    """All tools of a model, by name; their schemas and examples have its columns."""
    fields, columns = assistant.fields, assistant.names
    row, observed = row_schema(fields, known=True), row_schema(fields, known=False)
    most = max(1, min(MOST_ROWS, MOST_ENTRIES // len(columns)))
    rows = {"type": "array", "minItems": 1, "maxItems": most}
    column = {"enum": columns} if len(columns) <= MOST_LISTED else TEXT
    example, last, questions = assistant.example, columns[-1], _questions(assistant)
    names = {"type": "array", "items": column, "minItems": 1, "maxItems": MOST_COLUMNS, "uniqueItems": True}
    return {
        "info": Tool(
            "About the model",
            "What the model is: its columns with their kinds, values and typical values (5 %, 50 % and 95 % "
            "quantiles of numbers, probabilities of categories), how many rows it was fitted to, and how good it "
            "is (validation NLL). Without arguments, the first 100 columns; name columns for others.",
            _object({"columns": names | {"description": "Columns to describe. Default: the first 100."}}),
            _answer({"columns": OBJECTS, "number_of_columns": {"type": "integer"}}),
            {"columns": columns[:1]},
            assistant.info,
        ),
        "ask": Tool(
            "Probability of a condition",
            "The probability of each question under the model. A question is CONDITION or CONDITION | GIVEN. "
            "Conditions compare a column with values (=, !=, <, <=, >, >=, in {a, b}, between a and b) and are "
            "joined by and, or, not and parentheses. Put names with spaces or other signs in backticks, and texts "
            f"in single quotes. Examples for this model: {'; '.join(questions)}. An answer is exact, or an "
            "estimate with a 95 % interval (low, high).",
            _object(
                {
                    "questions": {
                        "type": "array",
                        "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_QUESTION},
                        "minItems": 1,
                        "maxItems": MOST_QUESTIONS,
                    },
                    "seed": SEED,
                },
                "questions",
            ),
            _answer({"answers": OBJECTS}),
            {"questions": questions},
            assistant.ask,
        ),
        "predict": Tool(
            "Distribution of a column",
            "The distribution of one column, the target, in each row, given what is known of the row. For "
            "categories: the most likely value and the probabilities; for numbers and dates: mean, standard "
            "deviation (of dates in days), median, and the 5 % and 95 % quantiles (low, high). Any columns may be "
            "unknown; a value of the target is ignored. The row {} asks for the distribution in the whole table.",
            _object(
                {"rows": rows | {"items": row}, "target": column | {"description": "The column to predict."}},
                "rows",
                "target",
            ),
            _answer({"target": TEXT, "predictions": OBJECTS}),
            {"rows": [{name: value for name, value in example.items() if name != last}], "target": last},
            assistant.predict,
        ),
        "sample": Tool(
            "New rows",
            f"Draw up to {most} new rows from the model, all columns or given the values of some. They "
            "are draws, not rows of the table. The same seed gives the same rows. For the probability of something, "
            "use ask: it is exact where counting samples is not.",
            _object(
                {
                    "count": {"type": "integer", "minimum": 1, "maximum": most, "default": 5},
                    "given": row | {"description": "Values to condition on. Default: none."},
                    "seed": SEED,
                }
            ),
            _answer({"rows": OBJECTS}),
            {"count": 3, "given": dict(list(example.items())[:1])},
            assistant.sample,
        ),
        "impute": Tool(
            "Fill unknown values",
            "Complete rows: every column that is left out or null is filled, given the others. Strategy mode "
            "(default): the most likely value of each, which need not fit each other; mean: means of numbers; sample: "
            "a joint draw, for rows that are plausible as a whole. 'filled' says how certain each filled value is: the "
            "probability of a category, a 90 % interval of a number.",
            _object(
                {
                    "rows": rows | {"items": row},
                    "strategy": {"enum": ["mode", "mean", "sample"], "default": "mode"},
                    "seed": SEED,
                },
                "rows",
            ),
            _answer({"rows": OBJECTS, "filled": OBJECTS}),
            {"rows": [example]},
            assistant.impute,
        ),
        "explain": Tool(
            "Why rows are odd",
            "How unusual rows are, and which entries make them so. The surprise of an entry is -log p in nats "
            "given the entries before it, averaged over orderings; 'excess' is the surprise above what is usual in "
            "the column: above 2 is notable, above 5 very odd. Entries are sorted by it. 'less_likely_than' is the "
            "share of rows drawn from the model that are more likely, for rows without unknown values.",
            _object({"rows": rows | {"items": observed}}, "rows"),
            _answer({"rows": OBJECTS}),
            {"rows": [example]},
            assistant.explain,
        ),
        "score": Tool(
            "Log-likelihood of rows",
            "The log-likelihood of each row in nats: of its known values, or of these given the columns in "
            "'given'. It is a density where numbers are continuous, so it may be above 0; compare rows with the "
            "same known columns only. To find out why a row is unlikely, use explain; for a probability, ask.",
            _object(
                {"rows": rows | {"items": observed}, "given": names | {"description": "Columns to condition on."}},
                "rows",
            ),
            _answer({"log_probs": {"type": "array", "items": NUMBER}}),
            {"rows": [example]},
            assistant.score,
        ),
    }


def _questions(assistant: Assistant) -> list[str]:
    """Questions about the columns of a model, that it can answer."""
    conditions = [
        str(Comparison(name, "=" if assistant.is_listed(name) else ">", value))
        for name, value in assistant.example.items()
    ]
    return [*conditions[-1:], *(f"{second} | {first}" for first, second in pairwise(conditions))]


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    closed = {"type": "object", "properties": properties, "additionalProperties": False}
    return closed | ({"required": list(required)} if required else {})


def _answer(properties: dict[str, Any]) -> dict[str, Any]:
    warnings = {"type": "array", "items": TEXT, "description": "Values that training never saw."}
    return {"type": "object", "properties": properties | {"warnings": warnings}, "required": list(properties)}
