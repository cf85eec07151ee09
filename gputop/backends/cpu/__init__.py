"""The cpu backend: NumPy, on one core or all. Real runs with real ceilings where there is no GPU."""
