"""Why training fails: gradients by role and slot, cliffs, signs in the texts."""
