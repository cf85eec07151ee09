"""Plans that run in a process of their own, because of what their libraries do to the launches of a process.

On an H200, a plan whose products cuBLAS splits along their inner axis makes every later launch of the same
context cost 0.16 to 0.34 us more, for as long as the context lives; PyTorch's compiled passes do the same.
Each plan that calls them has a process and a context of its own, so that its windows leave those of all
other plans as they were. It is still sampled in turn with them: one process waits while the other one's pass
runs.
"""
