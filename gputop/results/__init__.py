"""What was measured, as records, and every file that it is written to."""
