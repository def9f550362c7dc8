"""The masked network: connectivities, masks, and one forward pass."""
