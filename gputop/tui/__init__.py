"""The terminal screen: shows what the worker measures. Knows no session and no backend."""
