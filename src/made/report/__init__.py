"""A report of a model: what it has learned of a table, beside the table itself.

`numbers` has what there is to know, of which `column`, `dependence` and `odd` are parts; `page` and `figures` show it.
"""
