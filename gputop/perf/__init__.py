"""What hardware allows and what samples say: GPU specifications, occupancy, roofline, paired statistics."""
