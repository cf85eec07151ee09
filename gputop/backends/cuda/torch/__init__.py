"""PyTorch, eager and compiled, as a baseline."""
