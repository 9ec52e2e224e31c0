"""Whether two expressions are equal: exactly, numerically, or in a killable worker."""
