"""Measured peaks of this device, one probe each."""
