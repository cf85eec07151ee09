"""Clocks of a pass and of its kernels: events, CUPTI, stamps."""
