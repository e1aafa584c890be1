"""The faces that speak MCP: stdio and HTTP. Of our packages only this one and `upstream` import the MCP library.

Nothing is imported here: `tokens` and `running` are for the command line and stay free of the library's second of
start-up time.
"""
