"""JSON Schemas of rows with a model's columns, and error messages about arguments for an assistant."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from made.display import shortened, visible
from made.errors import QuestionError
from made.tables.field import Field

__all__ = ["check", "column_schema", "no_column", "row_schema"]

MOST_COLUMNS = 60  # that a schema lists
MOST_VALUES = 50  # of a column, that a schema lists
LONGEST = 1000  # characters of a value
NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")
SHOWN = 20  # names or values in a message
SCALAR = {"type": ["string", "number", "boolean", "null"], "maxLength": LONGEST}


def column_schema(field: Field, *, known: bool) -> dict[str, Any]:
    """What a column's values look like in JSON.

    Arguments:
        field: the column.
        known: whether only values are allowed that training has seen, in a column with a list of categories.
    """
    about = {"description": shortened(visible(f"{field.kind}: {field.about()}"), 200)}
    if field.dtype == "bool":
        return {"type": ["boolean", "null"]} | about
    if field.temporal:
        return {"type": ["string", "null"], "maxLength": 32, "format": _format(field)} | about
    if field.listed and not field.column.quantitative and known and len(field.values) <= MOST_VALUES:
        return {"enum": [*map(_short, field.values), None]}
    if field.dtype == "text":
        return {"type": ["string", "null"], "maxLength": LONGEST} | about
    return {"type": ["number", "null"]} | about


def _format(field: Field) -> str:
    return "date" if field.temporal == "date" else "date-time"


def _short(value: Any) -> Any:
    """A whole number as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def row_schema(fields: Sequence[Field], *, known: bool) -> dict[str, Any]:
    """A row: an object with the model's columns, all of which may be left out."""
    about = {"description": "Column names and values. Leave a column out, or give null, if its value is unknown."}
    if len(fields) > MOST_COLUMNS:
        return {"type": "object", "additionalProperties": SCALAR} | about
    properties = {field.name: column_schema(field, known=known) for field in fields}
    return {"type": "object", "properties": properties, "additionalProperties": False} | about


def check(arguments: Mapping[str, Any], schema: Mapping[str, Any], names: Sequence[str], example: Any) -> None:
    """Refuse arguments that do not match a schema, with the place, the remedy, and an example that does.

    Arguments:
        arguments: what was given.
        schema: of the tool.
        names: the columns of the model.
        example: arguments that are right.
    """
    error = best_match(Draft202012Validator(schema).iter_errors(arguments))
    if error is not None:
        raise QuestionError(f"{_place(error)}{_reason(error, names)} Example of arguments: {json.dumps(example)}")


def _place(error: ValidationError) -> str:
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.absolute_path)
    return f"{path.lstrip('.')}: " if path else ""


def _reason(error: ValidationError, names: Sequence[str]) -> str:
    instance: Any = error.instance
    if error.validator == "additionalProperties":
        allowed = list(error.schema["properties"])
        unknown = next(each for each in instance if each not in allowed)
        if allowed == list(names):
            return no_column(unknown, names)
        return f"there is no argument {unknown!r}{_guess(unknown, allowed)} The arguments are: {_listed(allowed)}."
    if error.validator == "enum":
        values = [each for each in error.validator_value if each is not None]
        unknown = "; null if it is unknown" if None in error.validator_value else ""
        said = f"{shortened(_written(instance), 80)} is not among the values{_guess(instance, values)}"
        return f"{said} They are: {_listed(values)}{unknown}."
    if error.validator in ("maxItems", "maxLength"):
        what = " characters" if error.validator == "maxLength" else ""
        return f"there should be at most {error.validator_value}{what}, not {len(instance)}."
    if error.validator == "type":
        wanted = error.validator_value
        words = " or ".join([wanted] if isinstance(wanted, str) else wanted)
        mended = _mended(instance, words, error.schema)
        return f"this should be of type {words}, not {shortened(_written(instance), 80)}{mended}."
    if error.validator == "required":
        return f"the argument {next(each for each in error.validator_value if each not in instance)!r} is missing."
    return f"{shortened(error.message, 200).rstrip('.')}."


def _mended(instance: Any, wanted: str, schema: Mapping[str, Any]) -> str:
    """How a value becomes one of the type that is wanted, if that is easy to say."""
    inside = instance.strip() if isinstance(instance, str) else ""
    if (wanted == "array" and inside[:1] == "[") or (wanted == "object" and inside[:1] == "{"):
        return ": write it without quotes"
    if "format" in schema:
        return ": write a text such as '2024-03-01'"
    if wanted == "array":
        return f": put it in a list, {shortened(json.dumps([instance], ensure_ascii=False), 80)}"
    if wanted.startswith(("number", "integer")) and NUMBER.fullmatch(inside):
        return ": write it without quotes"
    return ": write it in quotes" if wanted.startswith("string") and isinstance(instance, (int, float)) else ""


def _written(value: Any) -> str:
    """A value in a message: true, not True."""
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def no_column(name: str, names: Sequence[str]) -> str:
    """That a column does not exist, and which do."""
    return f"there is no column {name!r}{_guess(name, names)} The columns are: {_listed(names)}."


def _guess(word: Any, known: Sequence[Any]) -> str:
    by_lower = {str(each).lower(): each for each in reversed(known)}
    found = get_close_matches(str(word).lower(), list(by_lower), 1, 0.6)
    return f": did you mean {by_lower[found[0]]!r}?" if found else "."


def _listed(values: Sequence[Any]) -> str:
    more = f", ... ({len(values)} in all)" if len(values) > SHOWN else ""
    return ", ".join(map(_written, values[:SHOWN])) + more
