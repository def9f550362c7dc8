"""Reports: what a model has learned from a table, next to the table itself.

`measure` computes a `Report` from the parts in `column`, `dependence` and `odd`; `page` and `figures` display it.
"""
