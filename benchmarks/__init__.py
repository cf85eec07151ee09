"""How fast the screen is, measured on the real program in a real terminal: each module is a command.

python -m benchmarks.first_number     from the start to the first time on the screen
python -m benchmarks.key_to_screen    from a key to the screen that answers it, over all views
python -m benchmarks.idle             CPU share while it measures, and bytes a second while nothing changes

Each prints its figures beside the most that is allowed, and exits with 1 if one is above it. They are no
tests: on a machine that others use they are upper bounds, so the load stands beside them.
"""
