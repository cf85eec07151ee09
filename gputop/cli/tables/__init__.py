"""Tables and sentences on stdout: pure functions from records to lines."""
