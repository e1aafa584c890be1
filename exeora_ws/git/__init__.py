"""Git: the only importer of pygit2 and the only caller of the git executable. Start at `port.py`.

Nothing is imported here: `links` is on the way of commands that cannot wait for the rest.

port.py              the values and the `Repository` that callers see
links.py             whose folder is this, is a worktree still what it was: with `os` alone (gitfiles.py reads for it)
opening.py           `open_repository`: exactly there, with the engine that fits
engine.py            what both engines share; executable.py and libgit2.py are the two
listing.py           every worktree on record (admin.py: the records; operations.py: rebases and bisects in them)
populating.py        adding a worktree, all or nothing; libgit2_checkout.py for a machine without git
seeding.py           filling it from another checkout: copier.py is the program (taking.py, index_file.py)
status.py            what a removal would lose
command.py           the only runner of git (ending.py: nothing is left running; messages.py: what it said)
"""
