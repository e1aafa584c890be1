"""Other MCP servers, published through ours: configuration, names, instances, catalog, calls (contract, section 9)."""
