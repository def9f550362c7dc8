"""`made ask`: the probability of a condition, given another."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from made.cli.errors import command, usage
from made.cli.inputs import load, stream_rows
from made.cli.options import MODEL, SEED, option
from made.cli.printing import mode, print_json, say
from made.display import visible
from made.errors import DataError

if TYPE_CHECKING:
    from made.ask.expressions import Query
    from made.model.model import Model

MOST_BYTES = 16 << 20  # of standard input


@command
def ask(
    folder: MODEL,
    questions: Annotated[
        list[str] | None,
        Argument(
            metavar="QUESTION",
            help="Such as \"income > 50 and job = 'fixed' | age < 30\".",
            show_default="one on each line of standard input",
        ),
    ] = None,
    data: Annotated[
        str | None, option("Rows in which to count how often the condition holds, like DATA.", "none")
    ] = None,
    samples: Annotated[int | None, option("Number of sample paths of an estimate.", "4096", min=2, max=10**6)] = None,
    seed: SEED = None,
) -> None:
    """Print the probability of a condition, given another: CONDITION | GIVEN.

    Conditions compare columns with values (=, !=, <, <=, >, >=, in {a, b}, between a and b, 20 < age <= 30) and are
    joined by and, or, not and parentheses. Quote names and texts with spaces. The answer is a probability under
    the fitted model: a sum over states or an integral, or an estimate by sampling with its 95 % interval. With --data,
    the frequency in these rows is printed beside it.
    """
    texts = questions or _lines()
    if not texts:
        raise usage("there is no question: give one as an argument, or one on each line of standard input.")

    from made.ask.exact import SAMPLES
    from made.ask.parser import parse

    model = load(folder)
    queries = [parse(text, model.schema.fields) for text in texts]  # errors come before anything is computed
    counts = None if data is None else _counts(model, queries, data)
    answers = []
    for index, query in enumerate(queries):
        answer = model.probability(query, samples=samples or SAMPLES, random_state=seed)
        answers.append({**asdict(answer), "interval": list(answer.interval)})
        beside = ""
        if counts is not None:
            rows, among = counts[index]
            answers[-1] |= {"frequency": rows / among if among else None, "rows": among}
            beside = f"; in the rows: {rows / among:.4g} ({rows:,} of {among:,})" if among else "; in the rows: none"
        if not mode.json:
            say(visible(str(answer) + beside))
    if mode.json:
        print_json({"answers": answers})


def _counts(model: Model, queries: list[Query], data: str) -> list[tuple[int, int]]:
    """For each question, in how many rows the condition holds, and among how many."""
    import numpy as np

    total = np.zeros((len(queries), 2), dtype=np.int64)
    for _, rows in stream_rows(data, model):
        for index, query in enumerate(queries):
            found = model.satisfied(query, rows)
            total[index] += [int(np.nansum(found)), int((~np.isnan(found)).sum())]
    return [(int(rows), int(among)) for rows, among in total]


def _lines() -> list[str]:
    """The questions on standard input, unless it is closed or a terminal; # begins a comment."""
    if sys.stdin is None or sys.stdin.isatty():
        return []
    content = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataError(f"standard input has more than {MOST_BYTES:,} bytes of questions: split them.")
    try:
        lines = map(str.strip, content.decode().splitlines())
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise DataError(f"standard input, line {line}: this is not UTF-8: convert it.") from None
    return [line for line in lines if line and not line.startswith("#")]
