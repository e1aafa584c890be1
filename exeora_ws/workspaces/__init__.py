"""Workspaces: the registry, how a selector becomes a place, and what makes, connects and removes them."""
