"""Learning, seen: studies whose commands, figures and tables are committed with them."""
