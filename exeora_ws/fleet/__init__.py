"""More than one machine, on NATS (docs/decisions/0017): the only room that imports `nats` and `nkeys`."""
