"""Other names for the same core: sets of tools that agents already know."""
