"""Tests through a gateway. A package, so that the fleet which they share ends with them."""
