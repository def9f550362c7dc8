"""Sphinx runs the code of the pages that ``run_pages`` names, and reads notebooks; what blocks show follows them."""

from __future__ import annotations

import json
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from docutils import nodes
from execution import Figure, Output, Session
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)


class RunBlocks(SphinxTransform):
    """Run the blocks of Python and the commands of a page, and put what they show after them."""

    default_priority = 300  # before images are collected

    def apply(self, **kwargs: Any) -> None:
        if not any(
            fnmatch(self.env.docname, pattern) for pattern in self.config.run_pages
        ):
            return
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            session = Session(Path(folder))
            for block in list(self.document.findall(nodes.literal_block)):
                language = block.get("language")
                if language not in ("python", "console"):
                    continue
                output = getattr(session, language)(block.astext())
                if output.error is not None:
                    error = f"{type(output.error).__name__}: {output.error}"
                    logger.warning(
                        "a block failed: %s", error, location=block, type="run"
                    )
                self.put(block, output, replace=language == "console")
                if self.env.docname in self.config.fold_pages:
                    fold(block)
        logger.info(f"ran {self.env.docname}: {time.perf_counter() - start:.1f} s")

    def put(self, block: nodes.literal_block, output: Output, *, replace: bool) -> None:
        """Show an output after its block, or instead of it."""
        shown = nodes.container(classes=["output"])
        for part in output.parts:
            if isinstance(part, str):
                language = "console" if replace else "none"
                shown += nodes.literal_block(
                    part,
                    part,
                    language=language,
                    classes=[] if replace else ["printed"],
                )
            elif isinstance(part, Figure):
                shown += [self.image(part, dark=False), self.image(part, dark=True)]
            else:
                shown += nodes.raw(
                    "", f'<div class="table-wrapper">{part[1]}</div>', format="html"
                )
        if replace:
            block.replace_self(list(shown.children))
        elif len(shown):
            block.parent.insert(block.parent.index(block) + 1, shown)

    def image(self, figure: Figure, *, dark: bool) -> nodes.image:
        """The node of a figure, for light or for dark pages, whose file is written."""
        name = f"{figure.name}-{'dark' if dark else 'light'}.svg"
        folder = Path(self.env.srcdir) / "_figures"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(figure.dark if dark else figure.light)
        shade = "only-dark" if dark else "only-light"
        return nodes.image(
            uri=f"/_figures/{name}", alt=figure.titles, classes=[shade, "figure"]
        )


def fold(block: nodes.literal_block) -> None:
    """Show a block only on request: its output matters more."""
    parent, place = block.parent, block.parent.index(block)
    parent.insert(place + 1, nodes.raw("", "</details>", format="html"))
    start = '<details class="code"><summary>How this was computed</summary>'
    parent.insert(place, nodes.raw("", start, format="html"))


class NotebookParser(MystParser):
    """Reads a notebook as the page of its cells; stored outputs are left out, since its code is run."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        cells = []
        for cell in json.loads(inputstring)["cells"]:
            text = "".join(cell["source"])
            cells.append(
                f"```python\n{text}\n```" if cell["cell_type"] == "code" else text
            )
        super().parse("\n\n".join(cells), document)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("run_pages", [], "env", [list])
    app.add_config_value("fold_pages", [], "env", [list])
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.add_transform(RunBlocks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
