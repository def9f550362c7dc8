r"""Compare density estimators: train each on the same rows, and score the same test rows.

The score is the mean negative log-likelihood (NLL) of the test rows, in nats, with a 95 % interval over test rows. Two
systems are compared by the paired difference :math:`\frac{1}{N} \sum_n \log q(x_n) - \log p(x_n)`. Its interval is
often far narrower than that of either NLL, because a row that is hard for one system is usually hard for the other:
two systems whose own intervals overlap may still be told apart.

An estimated log-likelihood adds its standard error to all intervals. A bound is an upper bound on the NLL: a system
with a worse bound is not known to be worse.
"""
