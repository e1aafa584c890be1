"""The tools as a person at a shell has them: the names, the gate and the record of the others, done in another way.

Each is a tool value like any other; `Calls.with_only` takes it the way of every call.
"""
