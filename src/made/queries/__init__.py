"""Queries about a network: likelihoods, conditionals, samples and imputation."""
