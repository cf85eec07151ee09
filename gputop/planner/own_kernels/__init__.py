"""Kernels of the user's own: a source and a TOML record beside it, in the folder that `--kernels` names.

What a record says is read as data and never runs; only the source is compiled and run.
"""
