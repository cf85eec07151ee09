"""GPT-2 itself: workloads, weights and their random numbers, activation buffers."""
