"""Learning algorithms: MARFT and Independent PPO, and the registry that finds others."""
