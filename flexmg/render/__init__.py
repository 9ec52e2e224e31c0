"""Renderings of an episode: text for terminals, a page for browsers."""
