"""The driver: context, launches, graphs, status codes, NVML."""
