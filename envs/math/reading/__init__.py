"""From a text to a tree: LaTeX, program notation and words as expressions."""
