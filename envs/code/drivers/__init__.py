"""What runs inside the sandbox around a program; see ``script`` for the interface."""
