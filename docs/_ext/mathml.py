"""Formulas as MathML, which browsers draw themselves: the site loads nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def mathml(node: nodes.Element, **options: Any) -> str:
    """A formula in LaTeX as MathML."""
    return str(tex2mathml(node.astext().replace(r"\dots", r"\ldots"), **options))


def inline(translator: Any, node: nodes.math) -> None:
    """A formula in a line."""
    translator.body.append(mathml(node))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """A formula by itself."""
    translator.body.append(f'<div class="math">{mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
