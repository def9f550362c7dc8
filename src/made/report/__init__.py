"""Reports: what a model has learned from a table, next to the table itself.

`measure` computes a `Report`, of which `column`, `dependence` and `odd` are parts; `page` and `figures` display it.
"""
