"""`Model`: a schema and a network, and the folder that keeps them."""
