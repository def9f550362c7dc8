"""A report as one page of HTML, from the template ``report.html``."""

from __future__ import annotations

import math
from typing import Any

from made.columns.bins import Histogram
from made.pages.render import render
from made.pages.text import short
from made.report import figures
from made.report.column import ColumnComparison
from made.report.report import Report

MOST_CHARTS = 60
SECTIONS = {
    "columns": "Columns",
    "shares": "Distributions",
    "dependence": "Association",
    "questions": "Short questions",
    "likelihood": "Likelihood and learning",
    "odd": "Oddest rows",
    "privacy": "Privacy",
    "model": "Model",
}


def page(report: Report) -> str:
    """The page of a report."""
    distances = [each.distance for each in report.columns if each.distance is not None]
    pairs, every = report.dependence, range(len(report.columns))
    empty = {
        place
        for place, some in (("odd", report.odd), ("questions", report.questions.asked), ("privacy", report.privacy))
        if not some
    }
    farthest = sorted(every, key=lambda place: -(report.columns[place].distance or 0.0))
    return render(
        "report.html",
        command="report",
        report=report,
        sections={place: name for place, name in SECTIONS.items() if place not in empty},
        mean_distance=sum(distances) / len(distances) if distances else None,
        charts={place: _chart(report.columns[place]) for place in sorted(farthest[:MOST_CHARTS])},
        heat=figures.heat(pairs, "Association of all pairs of columns, real and sampled") if pairs.pairs else "",
        differences=figures.differences(pairs, "Association in samples minus that in rows") if pairs.pairs else "",
        log_prob=figures.histogram(
            report.likelihood.log_prob, "log p of rows, real and sampled", width=480, height=260, unit="log p, in nats"
        ),
        curve=figures.curve(report.training, "Learning curve: NLL of training and validation rows by epoch"),
    )


def _chart(column: ColumnComparison) -> dict[str, Any]:
    spike = None
    if column.spike is not None:
        spike = figures.moment(column.spike.value, math.inf) if column.dates else short(column.spike.value)
    return {"picture": figures.shares(column), "spike": spike, "is_histogram": isinstance(column.shares, Histogram)}
