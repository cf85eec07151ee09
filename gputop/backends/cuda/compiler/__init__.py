"""CUDA C++ to machine code, and what the machine code says."""
