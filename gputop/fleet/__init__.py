"""Measuring on many devices through Dask: a scheduler, one Dask worker a device, one gputop worker in each.

The one package that imports Dask, and only when a fleet is asked for (extra `fleet`).
"""
