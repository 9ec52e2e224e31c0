"""Running programs that nobody trusts: only bytes leave the sandbox."""
