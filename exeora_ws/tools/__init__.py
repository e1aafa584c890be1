"""Tools: each a value (`spec.py`), listed in `catalog.py`, run by the way of a call (`call.py`)."""
