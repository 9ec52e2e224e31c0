"""Engines that generate the actions of language-model policies."""
