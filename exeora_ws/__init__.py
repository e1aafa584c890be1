"""Exeora Workspaces: one core that acts in the workspace it was told to, or fails."""

__version__ = "0.1.0"
