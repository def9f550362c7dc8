"""Blocks of code as a reader would run them: what they print, what their last line shows, and their figures."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Text and axes of figures, on light and on dark pages; and in figures of the package.
INK, DARK_INK = "#33383f", "#d5d9df"
INKS = (INK, "#333333")
STYLE: dict[str, Any] = {
    "figure.figsize": (7.2, 3.2),
    "figure.constrained_layout.use": True,
    "savefig.transparent": True,
    "svg.hashsalt": "made",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "legend.frameon": False,
    "image.cmap": "Blues",
}
for name in (
    "text.color",
    "axes.labelcolor",
    "axes.edgecolor",
    "xtick.color",
    "ytick.color",
):
    STYLE[name] = INK
COLOURS = ["#3b82d6", "#e0782f", "#4f9d69", "#a06bc0", "#8c9199"]


@dataclass
class Figure:
    """A figure as SVG, for light and for dark pages, and its titles."""

    light: str
    dark: str
    titles: str

    @property
    def name(self) -> str:
        return hashlib.sha256(self.light.encode()).hexdigest()[:12]


@dataclass
class Output:
    """What a block showed: text, HTML of a table, or a figure; ``error`` if it failed."""

    parts: list[str | Figure | tuple[str, str]] = field(
        default_factory=list
    )  # text; a figure; ("html", ...)
    error: BaseException | None = None


class Session:
    """The blocks of one page, run one after another in one namespace and one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.count = 0

    def python(self, code: str) -> Output:
        """Run a block of Python. Warnings are errors."""
        self.count += 1
        output, text = Output(), io.StringIO()

        def flush() -> None:
            if text.getvalue().strip():
                output.parts.append(text.getvalue().rstrip())
            text.seek(0)
            text.truncate()

        def show(value: object) -> None:
            if type(value).__name__ == "Figure":  # one of its own, not of pyplot
                flush()
                output.parts += pictures([value])
            if (
                value is None
                or type(value).__module__.startswith("matplotlib")
                or is_drawn(value)
            ):
                return
            html = (
                getattr(value, "to_html", None)
                if type(value).__module__.startswith("pandas")
                else None
            )
            if html is None:
                print(repr(value))
            else:
                flush()
                output.parts.append(("html", html(border=0)))

        body = ast.parse(code).body
        try:
            with (
                self.here(),
                contextlib.redirect_stdout(text),
                warnings.catch_warnings(),
                displayhook(show),
                style(),
            ):
                warnings.simplefilter("error")
                for i, statement in enumerate(body):
                    shown = isinstance(statement, ast.Expr) and i == len(body) - 1
                    tree: Any = (
                        ast.Interactive([statement])
                        if shown
                        else ast.Module([statement], type_ignores=[])
                    )
                    name = f"<block {self.count}>"
                    exec(
                        compile(tree, name, "single" if shown else "exec"),
                        self.namespace,
                    )
                flush()
                output.parts += figures()
        except Exception as error:
            flush()
            output.error = error
        return output

    def console(self, text: str) -> Output:
        """Run the commands of a block, those after ``$``, and show each with what it prints."""
        lines, output = [], Output()
        for command in re.findall(r"^\$ (.*(?:\\\n.*)*)", text, flags=re.M):
            done = subprocess.run(
                command,
                shell=True,
                cwd=self.folder,
                text=True,
                encoding="utf-8",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=os.environ
                | {
                    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                    "COLUMNS": "96",
                },
            )
            lines += [f"$ {command}", done.stdout.rstrip()]
            if done.returncode:
                output.error = RuntimeError(
                    f"{command}: exit code {done.returncode}\n{done.stdout}"
                )
                break
        output.parts.append("\n".join(line for line in lines if line))
        return output

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """In the folder of the page."""
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            yield
        finally:
            os.chdir(before)


@contextlib.contextmanager
def displayhook(show: Any) -> Iterator[None]:
    """Show the value of the last line by a function."""
    before, sys.displayhook = sys.displayhook, show
    try:
        yield
    finally:
        sys.displayhook = before


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Figures in the style of the site."""
    import matplotlib as mpl

    mpl.use("Agg")
    with mpl.rc_context(STYLE | {"axes.prop_cycle": mpl.cycler(color=COLOURS)}):
        yield


def is_drawn(value: object) -> bool:
    """Whether a value is what plotting methods return: artists, or arrays and lists of them."""
    import numpy as np

    while isinstance(value, (list, tuple, np.ndarray)) and len(value):
        value = value[-1]
    return type(value).__module__.startswith("matplotlib")


def figures() -> list[Figure]:
    """The open figures, which are closed."""
    from matplotlib import pyplot

    found = pictures([pyplot.figure(number) for number in pyplot.get_fignums()])
    pyplot.close("all")
    return found


def pictures(drawn: Iterable[Any]) -> list[Figure]:
    """Figures of matplotlib as SVG."""
    found = []
    for figure in drawn:
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        titles = [figure.get_suptitle()]
        for axes in figure.axes:
            titles.append(
                axes.get_title() or next((text.get_text() for text in axes.texts), "")
            )
        light = file.getvalue()
        dark = light
        for ink in INKS:
            dark = dark.replace(ink, DARK_INK)
        found.append(Figure(light, dark, "; ".join(each for each in titles if each)))
    return found
