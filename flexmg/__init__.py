"""Flexible Markov Games for teams of language models."""
