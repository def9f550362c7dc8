"""Queries about an ensemble of masks: likelihoods, conditionals, samples, imputation, denoising, surprise.

Read in this order: `evidence` (what is observed, given and asked for), `schedule` (which passes a query takes),
`ensemble` (what every query takes), `likelihood`, `incremental` (passes that share their work), `conditional` (one
column), `marginals` (all unknown columns), `ancestral` and `sampling`, then what is built from these: `imputation`,
`denoising`. `batches` and `random` serve all of them.
"""
