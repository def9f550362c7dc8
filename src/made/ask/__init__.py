"""The question language and the probability of a condition."""
