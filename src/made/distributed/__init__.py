"""Training with several processes, on one machine or on several."""
