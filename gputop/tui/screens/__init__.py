"""The screens: main, and the small ones that open over it."""
