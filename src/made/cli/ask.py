"""`made ask`: the probability of a condition, given another."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

from typer import Argument

from made.cli.errors import command, usage
from made.cli.inputs import load
from made.cli.options import MODEL, SEED, option
from made.cli.printing import mode, print_json, say
from made.display import visible
from made.errors import DataError

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
    samples: Annotated[int | None, option("Number of sample paths of an estimate.", "4096", min=2, max=10**6)] = None,
    seed: SEED = None,
) -> None:
    """Print the probability of a condition, given another: CONDITION | GIVEN.

    Conditions compare columns with values (=, !=, <, <=, >, >=, in {a, b}, between a and b, 20 < age <= 30) and are
    joined by and, or, not and parentheses. Quote names and texts with spaces. The answer is a probability under
    the fitted model: a sum over states or an integral, or an estimate by sampling with its 95 % interval.
    """
    texts = questions or _lines()
    if not texts:
        raise usage("there is no question: give one as an argument, or one on each line of standard input.")

    from made.ask.exact import SAMPLES
    from made.ask.parser import parse

    model = load(folder)
    for text in texts:  # report what cannot be parsed before computing anything
        parse(text, model.schema.fields)
    answers = []
    for text in texts:
        answer = model.probability(text, samples=samples or SAMPLES, random_state=seed)
        answers.append({**asdict(answer), "interval": list(answer.interval)})
        if not mode.json:
            say(visible(str(answer)))
    if mode.json:
        print_json({"answers": answers})


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
