"""The vocabulary of a plan: frozen records, a plan's string form, what can be chosen."""
