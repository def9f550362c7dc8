"""`made paper`: reproduce the paper's tables and figures; each command resumes where it was stopped."""

from __future__ import annotations

import typer

from made.cli.paper.figure_masks import masks
from made.cli.paper.figure_network import network
from made.cli.paper.figure_samples import samples
from made.cli.paper.report import report
from made.cli.paper.table_baselines import baselines
from made.cli.paper.table_complexity import complexity
from made.cli.paper.table_mnist import mnist
from made.cli.paper.table_uci import uci

app = typer.Typer(no_args_is_help=True, help="Reproduce the paper's tables and figures.", rich_markup_mode=None)
table = typer.Typer(no_args_is_help=True, help="The tables: uci, mnist, baselines, complexity.", rich_markup_mode=None)
figure = typer.Typer(no_args_is_help=True, help="The figures: masks, samples, network.", rich_markup_mode=None)
for table_command in (uci, mnist, baselines, complexity):
    table.command()(table_command)
for figure_command in (masks, samples, network):
    figure.command()(figure_command)
app.add_typer(table, name="table")
app.add_typer(figure, name="figure")
app.command()(report)
