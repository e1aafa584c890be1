"""Skills and the agent prompt: what an agent is given to read."""
