"""Comparing density estimators on one table."""
