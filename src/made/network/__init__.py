"""The masked autoencoder of the paper's sections 3 and 4.

Read in this order: `connectivity` (orderings, degrees, masks), `weights` (names and shapes), `staircase`, `gathered`
and `buffers` (masked products that skip the zeros), `layout` (the order of units in a pass), `masked` (the parameters
and one pass). `limits` bounds the size of a model, and `threads` chooses their number.
"""
