"""A plan as one source file that needs nothing of gputop: CUDA C++ for a GPU, C for one core.

Writing a file needs neither a GPU nor CuPy. `templates/` holds the parts that every program has alike.
"""
