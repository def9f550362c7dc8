"""A report as one page of HTML, complete in itself; what it says is in `numbers`."""

from __future__ import annotations

import math
from typing import Any

from made.pages.html import Cell, document, row, scroll, short, signed, table, text
from made.report import figures
from made.report.column import Bars, Column, Histogram
from made.report.figures import percent
from made.report.numbers import Report
from made.report.odd import OddRow

__all__ = ["COMMAND", "page"]

COMMAND = "report"
MOST_CHARTS = 60
SECTIONS = {
    "columns": "Columns",
    "shares": "Distributions",
    "dependence": "Dependence",
    "likelihood": "Likelihood and learning",
    "odd": "Oddest rows",
    "model": "Model",
}
STYLE = (
    figures.STYLE
    + """
body { max-width: 76rem; }
nav { margin: 1rem 0; display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; }
ul.said { padding-left: 1.2rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 0.75rem; margin: 1.25rem 0; }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.6rem 0.8rem; }
.tiles dt { color: var(--soft); font-size: 0.85rem; }
.tiles dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.tiles small { font-size: 0.85rem; color: var(--soft); }
.key span { white-space: nowrap; margin-right: 1.25rem; }
.key i { display: inline-block; width: 1.1em; height: 0.75em; margin-right: 0.4em; border-radius: 2px; }
i.real { background: var(--mark); }
i.sampled { background: var(--other); }
.cards { columns: 20rem; column-gap: 1rem; }
.card { break-inside: avoid; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
        padding: 0.75rem 0.9rem; margin: 0 0 1rem; }
.card h3 { font-size: 1rem; margin: 0 0 0.4rem; }
.card h3 small { font-weight: 400; color: var(--soft); margin-left: 0.4rem; }
.card svg { width: 100%; }
.card figcaption { margin-top: 0.3rem; font-size: 0.85rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1rem 2rem; }
.pair > * { min-width: 0; margin: 0; }
.pair > figure > svg { width: 100%; max-width: 38rem; }
.meter { display: inline-block; width: 5rem; height: 0.6rem; background: var(--line); border-radius: 3px;
         margin-left: 0.6rem; overflow: hidden; }
.meter i { display: block; height: 100%; background: var(--soft); }
.meter i.far { background: var(--other); }
.odd { columns: 26rem; column-gap: 1rem; }
.odd table { font-size: 0.88rem; table-layout: fixed; }
.odd th, .odd td { padding: 0.2rem 0.5rem 0.2rem 0; overflow-wrap: anywhere; }
.odd th.number { width: 4.6rem; }
.odd td.number { white-space: normal; }
th small, td small { color: var(--soft); }
details { font-size: 0.88rem; margin-top: 0.5rem; }
summary { cursor: pointer; color: var(--mark); }
dl.all { display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: 0.1rem 0.9rem; margin: 0.4rem 0; }
dl.all dt { color: var(--soft); }
dl.all dd { margin: 0; }
@media (max-width: 30rem) { body { margin: 1rem auto; } .meter { display: none; } table { font-size: 0.85rem; }
  th, td { padding: 0.3rem 0.3rem; }
  tbody th small { display: block; } }
"""
)
KEY = (
    '<p class="key soft"><span><i class="real"></i>real: the rows of the table</span>'
    '<span><i class="sampled"></i>sampled: rows that the model draws</span></p>'
)


def page(report: Report) -> str:
    """The whole page."""
    title = f"{report.data}, and what {report.model} has learned of it"
    links = "".join(f'<a href="#{place}">{name}</a>' for place, name in SECTIONS.items())
    body = [
        "<header>",
        f"<h1>{text(report.data, 80)}</h1>",
        f'<p class="soft">and what the model <b>{text(report.model, 120)}</b> has learned of it. Whatever is blue is '
        "of the table, whatever is orange is of samples that the model draws.</p>",
        "</header>",
        "<main>",
        _tiles(report),
        '<ul class="said">',
        *(f"<li>{text(each)}</li>" for each in report.sentences()),
        "</ul>",
        *(f'<p class="soft">{text(each)}</p>' for each in report.notes),
        f'<nav aria-label="Sections">{links}</nav>',
        *_columns(report),
        *_shares(report),
        *_dependence(report),
        *_likelihood(report),
        *_odd(report),
        *_model(report),
        "</main>",
    ]
    return document(title, body, command=COMMAND, style=STYLE)


def _heading(section: str) -> str:
    return f'<h2 id="{section}">{SECTIONS[section]}</h2>'


def _tiles(report: Report) -> str:
    found = report.likelihood
    half = "" if math.isnan(found.ci95) else f" <small>± {found.ci95:.2f}</small>"
    distances = [each.distance for each in report.columns if each.distance is not None]
    facts = [
        (
            "rows",
            f"{report.rows:,}"
            + ("" if report.rows == report.rows_in_data else f" <small>of {report.rows_in_data:,}</small>"),
        ),
        ("columns", f"{len(report.columns):,}"),
        ("samples", f"{report.samples:,}"),
        ("NLL of rows, in nats", f"{found.nll:.2f}{half}"),
        ("mean distance of columns", f"{sum(distances) / len(distances):.3f}" if distances else "none"),
        ("mean error of dependence", f"{report.dependence.difference:.3f}" if report.dependence.pairs else "none"),
    ]
    return '<dl class="tiles">' + "".join(f"<div><dt>{n}</dt><dd>{v}</dd></div>" for n, v in facts) + "</dl>"


def _columns(report: Report) -> list[str]:
    heads: list[Cell] = [("column", False), ("holes", True), ("distinct", True)]
    heads += [("distance", True), ("chance", True)]
    charts = {place for place, _ in _charted(report)}
    rows = []
    for place, each in enumerate(report.columns):
        name = text(each.name, 60)
        name = f'<a href="#c{place}">{name}</a>' if place in charts else name
        far = ' class="far"' if each.differs else ""
        bar = f'<i{far} style="width:{100 * (each.distance or 0):.1f}%"></i>'
        distance = f'{each.distance:.3f}<span class="meter" aria-hidden="true">{bar}</span>' if each.chance else "none"
        rows.append(
            row(
                [
                    (f"{name} <small>{_kind(each)}</small>", False),
                    (percent(each.holes), True),
                    (f"{each.distinct:,}", True),
                    (distance, True),
                    ("" if each.chance is None else f"{each.chance:.3f}", True),
                ]
            )
        )
    about = (
        "Distance is that of samples from rows: 0 if their shares are the same, 1 if they have nothing in common "
        "(total variation; of numbers, Kolmogorov-Smirnov). Chance is what two samples of the same distribution "
        "stay below 19 times of 20: what is beyond it has an orange bar."
    )
    return [_heading("columns"), f'<p class="soft">{about}</p>', scroll(table(heads, rows), "The columns")]


def _kind(each: Column) -> str:
    return text(each.kind) + (", dates" if each.dates else "")


def _charted(report: Report) -> list[tuple[int, Column]]:
    """The columns that have a picture: all, or those that are farthest off."""
    every = list(enumerate(report.columns))
    if len(every) <= MOST_CHARTS:
        return every
    far = sorted(every, key=lambda pair: -(pair[1].distance or 0.0))[:MOST_CHARTS]
    return sorted(far, key=lambda pair: pair[0])


def _shares(report: Report) -> list[str]:
    charted = _charted(report)
    lines = [_heading("shares"), KEY]
    if len(charted) < len(report.columns):
        lines.append(
            f'<p class="soft">Of {len(report.columns):,} columns, the {len(charted)} are shown whose samples are '
            "farthest from the rows.</p>"
        )
    lines.append('<div class="cards">')
    for place, each in charted:
        label = f"{each.name}: shares of values, real and sampled"
        if isinstance(each.shares, Bars):
            drawn = figures.bars(each.shares, label)
        else:
            drawn = figures.histogram(each.shares, label, dates=each.dates) if each.shares.edges else ""
        lines += [
            f'<figure class="card" id="c{place}">',
            f"<h3>{text(each.name, 60)}<small>{_kind(each)}</small></h3>",
            drawn,
            f"<figcaption>{_caption(each)}</figcaption>",
            "</figure>",
        ]
    return [*lines, "</div>"]


def _caption(each: Column) -> str:
    if each.distance is None:
        return "Nothing is observed in these rows; only samples are shown."
    words = f"Distance {each.distance:.3f}, " + ("beyond chance" if each.differs else "within chance")
    words += f" ({each.chance:.3f})."
    if each.spike is not None:
        value = figures.moment(each.spike.value, math.inf) if each.dates else short(each.spike.value)
        words += f" Exactly {value}: {percent(each.spike.real)} real, {percent(each.spike.sampled)} sampled."
    if isinstance(each.shares, Histogram):
        words += _tails(each.shares) + (" The scale is logarithmic." if each.shares.scale == "log" else "")
    return words


def _tails(shares: Histogram) -> str:
    return " The tails are in the bins at the ends." if shares.below or shares.above else ""


def _dependence(report: Report) -> list[str]:
    found, lines = report.dependence, [_heading("dependence")]
    if not found.pairs:
        return [*lines, '<p class="soft">There are no two columns of which each has more than one value.</p>']
    about = (
        "How much two columns have to do with each other: Cramér's V, its bias corrected, numbers in bins of equal "
        "shares; 0 if they are independent, 1 if each is known from the other."
    )
    if found.measured < len(report.columns):
        about += f" It was measured for the {found.measured} columns whose values differ most."
    if len(found.columns) < found.measured:
        about += f" Of {found.measured} columns, the {len(found.columns)} most dependent ones are shown."
    heads: list[Cell] = [("two columns", False), ("real", True), ("sampled", True), ("off by", True)]
    tables = []
    for name, pairs in (("The most dependent pairs", found.strongest), ("The pairs that differ most", found.farthest)):
        rows = [
            row(
                [
                    (f"{text(pair.first, 30)} and {text(pair.second, 30)}", False),
                    (f"{pair.real:.2f}", True),
                    (f"{pair.sampled:.2f}", True),
                    (signed(f"{pair.sampled - pair.real:+.2f}"), True),
                ]
            )
            for pair in pairs
        ]
        tables.append(f"<div>{scroll(table(heads, rows, caption=name), name)}</div>")
    return [
        *lines,
        f'<p class="soft">{about}</p>',
        '<div class="pair">',
        "<figure>",
        scroll(figures.heat(found, "Dependence of all pairs of columns, real and sampled"), "Dependence of all pairs"),
        "<figcaption>Real below the diagonal, sampled above it. If the model has learned all, one half mirrors the "
        "other.</figcaption></figure>",
        "<figure>",
        scroll(figures.differences(found, "Dependence in samples less that in rows"), "Differences in dependence"),
        "<figcaption>Sampled less real: orange where samples are more dependent than the rows, blue where they are "
        "less. If the model has learned all, this is empty.</figcaption></figure>",
        *tables,
        "</div>",
    ]


def _likelihood(report: Report) -> list[str]:
    found = report.likelihood
    shares = found.log_prob
    drawn = figures.histogram(shares, "log p of rows, real and sampled", width=480, height=260, unit="log p, in nats")
    parts = [
        _heading("likelihood"),
        KEY,
        '<div class="pair">',
        f"<figure>{drawn}<figcaption>log p of each row: on the left are the odd ones. The two should have one shape. "
        f"A sample has the holes of some row before it is asked about, so that they can be compared.{_tails(shares)}"
        "</figcaption>",
        "</figure>",
    ]
    if report.training.epochs:
        drawn = figures.curve(report.training, "The learning curve: NLL of training and validation rows by epoch")
        words = (
            "NLL in nats, the mean over rows, lower is better. It should have become level; if validation rises where "
            "training falls, rows are learned by heart. Training has dropout and one mask, and so may be above "
            "validation."
        )
        settings = report.training.settings
        if settings["masks"] == "unlimited" and report.training.masks > 1:
            words += f" Validation is of {settings['validation_masks']} masks here; the model averages more."
        parts.append(f"<figure>{drawn}<figcaption>{words}</figcaption></figure>")
    return [*parts, "</div>"]


def _odd(report: Report) -> list[str]:
    if not report.odd:
        return []
    return [
        _heading("odd"),
        f'<p class="soft">The {len(report.odd)} least likely of {report.rows:,} rows, counted from 0, and the entries '
        "that make them so: their surprise, in nats, above what is usual in their column; what would be most likely "
        "there given the rest of the row; and p, how likely the entry itself is.</p>",
        '<div class="odd">',
        *(_odd_row(each) for each in report.odd),
        "</div>",
    ]


def _odd_row(each: OddRow) -> str:
    heads: list[Cell] = [("column", False), ("value", False), ("most likely", False), ("surprise", True)]
    rows = []
    for reason in each.reasons:
        chance = "" if reason.probability is None else f" <small>(p {reason.probability:.2g})</small>"
        rows.append(
            row(
                [
                    (text(reason.column, 40), False),
                    (f"{_value(reason.value)}{chance}", False),
                    (_value(reason.likeliest), False),
                    (signed(f"{reason.surprise - reason.usual:+.1f}"), True),
                ]
            )
        )
    values = "".join(f"<dt>{text(name, 40)}</dt><dd>{_value(value)}</dd>" for name, value in each.values.items())
    reasons = table(heads, rows) if rows else '<p class="soft">No entry alone is odd.</p>'
    return (
        f'<section class="card"><h3>Row {each.row:,}<small>log p {signed(f"{each.log_prob:.2f}")}</small></h3>{reasons}'
        f'<details><summary>All that is observed</summary><dl class="all">{values}</dl></details></section>'
    )


def _value(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else text(value, 60)


def _model(report: Report) -> list[str]:
    training = report.training
    settings = training.settings
    nll = (
        ""
        if training.valid_nll is None
        else f", validation NLL {training.valid_nll:.3f} in epoch {training.best_epoch}"
    )
    hidden = " x ".join(map(str, settings["hidden_sizes"])) or "no"
    facts = [
        ("model", report.model),
        ("trained on", f"{training.rows:,} rows, chosen by {training.valid_rows:,}"),
        ("training", f"{len(training.epochs):,} epochs{nll}" + ("" if training.finished else "; not finished")),
        ("network", f"{hidden} hidden units, {training.parameters:,} parameters"),
        ("masks", f"{settings['masks']}; {training.masks:,} are averaged in an answer"),
        ("report", f"made {report.made}, seed {report.seed}"),
    ]
    rest = "".join(f"<dt>{text(name)}</dt><dd>{text(value, 200)}</dd>" for name, value in settings.items())
    return [
        _heading("model"),
        f'<dl class="all">{"".join(f"<dt>{text(n)}</dt><dd>{text(v)}</dd>" for n, v in facts)}</dl>',
        f'<details><summary>All of its settings</summary><dl class="all">{rest}</dl></details>',
    ]
