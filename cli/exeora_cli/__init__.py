"""The command line: a thin face on the core, one module a command group."""
