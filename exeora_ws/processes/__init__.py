"""Processes: the only spawner, and what keeps, reads and ends what it started."""
