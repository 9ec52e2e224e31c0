"""Learning algorithms: MARFT, Independent PPO, MAPoRL, GRPO, and the registry that finds others."""
