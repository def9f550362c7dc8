"""`made paper report`: docs/results.md, from the JSON files of the results."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

from made.cli.errors import command, fail
from made.cli.options import flag, option
from made.cli.paper.shared import RESULTS, SEED
from made.cli.printing import mode, note, print_json


@command
def report(
    results: RESULTS = Path("results"),
    out: Annotated[Path, option("Markdown file of the page.")] = Path("docs/results.md"),
    check: Annotated[bool, flag("--check", "Write nothing; fail if the page is not up to date.")] = False,
    seed: SEED = 0,
) -> None:
    """Write docs/results.md: the paper's numbers beside ours, from the JSON files in --results."""
    from made.errors import DataError
    from made.io.atomic import atomic
    from made.paper.results_page import results_page

    if not results.is_dir():
        remedy = "run `made paper table` or `made paper figure` first"
        raise fail(f"'--results': there is no folder {results}: {remedy}.", 3)
    text = results_page(results, Path(os.path.relpath(results, out.parent)).as_posix())
    try:
        same = out.is_file() and out.read_bytes() == text.encode()
        if check and not same:
            again = shlex.join(["made", "paper", "report", "--results", str(results), "--out", str(out)])
            raise DataError(f"{out} is not up to date with {results}: write it again ({again}).")
        if not same:
            out.parent.mkdir(parents=True, exist_ok=True)
            with atomic(out) as file:
                file.write(text.encode())
    except OSError as error:
        raise fail(f"'--out': cannot write {out}: {error.strerror or error}.", 3) from None
    if mode.json:
        print_json({"out": str(out), "changed": not same})
    else:
        note(f"{out} {'is up to date' if same else 'is written'}.")
