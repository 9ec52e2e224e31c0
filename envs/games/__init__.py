"""Small exact games: teams whose every episode can be enumerated.

An action is one letter; a game has one problem, or one per state. Everything about it can be
computed without sampling, so that estimators and update schemes can be measured exactly
(:mod:`flexmg.baselines.exact`). They are ordinary Flexible Markov Games all the same.
"""
