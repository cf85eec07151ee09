"""The cuda backend: the product. `availability` can be imported without CuPy and without a device."""
