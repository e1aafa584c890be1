"""Measurements of the product beside git, ripgrep and other servers: `make bench`. None of it is a test."""
