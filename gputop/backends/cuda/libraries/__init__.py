"""NVIDIA's libraries as kernels: cuBLAS and cuBLASLt."""
