"""Pages that are generated: the command line from its own help, and the source of the package, to which names link."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

SOURCE = Path(__file__).parents[2] / "src"
LINK = re.compile(r"\[(`?)([^\]`]*)\1\]\(\.\./src/(made/[\w/]+\.py)\)")


def commands() -> str:
    """Every command with its arguments and options, as MyST."""
    import typer

    from made.cli.commands import load_app

    def text(command: Any, name: str, level: int) -> Iterator[str]:
        context = typer.Context(command, info_name=name)
        if level > 1:
            yield f"{'#' * level} {name}"
        yield (command.help or "").replace("<", "\\<")
        if not hasattr(command, "commands"):
            yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
        records = [
            each.get_help_record(context) for each in command.get_params(context)
        ]
        lines = [
            f"`{label}`\n: {meaning or ' '}\n"
            for label, meaning in filter(None, records)
        ]
        if lines and level > 1:
            yield "\n".join(line.replace("  [", " [") for line in lines)
        for each, inner in getattr(command, "commands", {}).items():
            yield from text(inner, f"{name} {each}", min(level + 1, 3))

    return "\n\n".join(text(typer.main.get_command(load_app()), "made", 1))


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the commands into their page, and link source files to their pages."""
    if docname == "reference/command-line":
        source[0] += "\n" + commands()
    up = "../" * docname.count("/")
    source[0] = LINK.sub(
        rf'<a class="reference" href="{up}source/\3.html"><code>\2</code></a>',
        source[0],
    )


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file of the package."""
    for path in sorted(SOURCE.rglob("made/**/*.py")):
        name = path.relative_to(SOURCE).as_posix()
        code = app.builder.highlighter.highlight_block(  # type: ignore[attr-defined]
            path.read_text(), "python", linenos="inline", lineanchors="line"
        )
        yield (
            f"source/{name}",
            {"title": name, "body": f"<h1>{name}</h1>{code}"},
            "page.html",
        )


def link_to_source(domain: str, info: dict[str, str]) -> str | None:
    """The place of a documented name in the pages of the source; pages of the reference lie one folder deep."""
    if domain != "py" or not info["module"]:
        return None
    found: Any = importlib.import_module(info["module"])
    for part in info["fullname"].split("."):
        found = getattr(found, part, None)
    try:
        found = inspect.unwrap(found.fget if isinstance(found, property) else found)
        path = Path(inspect.getsourcefile(found) or "")
        line = inspect.getsourcelines(found)[1]
    except (TypeError, OSError, AttributeError):
        return None
    return (
        f"../source/{path.relative_to(SOURCE).as_posix()}.html#line-{line}"
        if SOURCE in path.parents
        else None
    )


def leave_out(
    app: Sphinx, what: str, name: str, found: Any, skip: bool, options: Any
) -> bool | None:
    """What estimators inherit from scikit-learn is documented there."""
    return (
        True
        if (getattr(found, "__module__", None) or "").startswith("sklearn.")
        else None
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", read)
    app.connect("autodoc-skip-member", leave_out)
    app.connect("html-collect-pages", source_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
