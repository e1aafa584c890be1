"""Git: the only importer of pygit2 and the only caller of the git executable. Start at `port.py`."""
