"""What is timed, and against which peers: ``make bench``."""
