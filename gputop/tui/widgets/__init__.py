"""The parts of the main screen, one a file: pure functions from the state to cells, and a thin widget."""
