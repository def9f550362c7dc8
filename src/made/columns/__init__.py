"""Kinds of columns: values to input units, and output units to a distribution."""
