"""Files: everything that reads or writes inside a confined root. `root.py` is the only way to a descriptor."""
