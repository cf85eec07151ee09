"""What to run in what order: prepare, gate, warm up, sample alternately, read against the model.

A library: no threads, no screen.
"""
