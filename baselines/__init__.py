"""Baselines: models, generation, rollouts, algorithms, training (``flexmg.baselines``)."""
