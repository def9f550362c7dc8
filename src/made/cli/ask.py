"""Questions in words: `ask`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from made.cli.errors import command, usage
from made.cli.models import load
from made.cli.options import JSON, MODEL, QUIET, SEED
from made.cli.printing import print_json, say
from made.display import visible
from made.errors import DataError

__all__ = ["ask"]

MOST_BYTES = 16 << 20  # of questions on standard input


@command
def ask(
    folder: MODEL,
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION",
            help="Such as \"income > 50 and job = 'fixed' | age < 30\"; none: one a line from standard input.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", min=2, max=10**6, help="How many paths an estimate takes.", show_default="4096"),
    ] = None,
    seed: SEED = None,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """The probability of a condition, given another: CONDITION | GIVEN.

    Conditions compare columns with values (=, !=, <, <=, >, >=, in {a, b}, between a and b, 20 < age <= 30) and are
    joined by and, or, not and parentheses. Names and texts with spaces go in quotes. The answer says whether it is
    exact, or an estimate with its 95 % interval.
    """
    texts = list(questions or []) or _lines()
    if not texts:
        raise usage("there is no question: give one, or some on standard input, one a line.")

    # Loaded here, so that --help need not wait for torch.
    from made.ask.exact import SAMPLES
    from made.ask.parser import parse

    model = load(folder, quiet=quiet)
    for text in texts:  # what cannot be read is said before anything is computed
        parse(text, model.schema.fields)
    answers = []
    for text in texts:
        answer = model.probability(text, samples=SAMPLES if samples is None else samples, random_state=seed)
        answers.append({**asdict(answer), "interval": list(answer.interval)})
        if not as_json:
            say(visible(str(answer)))
    if as_json:
        print_json({"answers": answers})


def _lines() -> list[str]:
    """The questions on standard input, if it is open and not a person's keyboard; # begins a remark."""
    if sys.stdin is None or sys.stdin.isatty():
        return []
    content = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise DataError(f"standard input has more than {MOST_BYTES:,} bytes of questions: ask them in parts.")
    try:
        lines = map(str.strip, content.decode().splitlines())
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise DataError(f"standard input, line {line}: this is not UTF-8, which questions should be in.") from None
    return [line for line in lines if line and not line.startswith("#")]
