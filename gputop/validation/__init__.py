"""Whether a pass is right, apart from how fast it is: the gate and its float64 reference."""
