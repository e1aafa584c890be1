"""The engine toolset: files behind guards, a shell, logs, and the lanes and phases of a planned turn."""
