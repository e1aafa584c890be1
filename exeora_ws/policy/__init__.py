"""Policy: what a project allows, who is asked, and the record of every call. Knows no tool."""
