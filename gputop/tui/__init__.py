"""The terminal screen: shows what the worker measures and asks it for more. Knows no session and no backend."""
