"""Wrappers around a Flexible Markov Game."""
