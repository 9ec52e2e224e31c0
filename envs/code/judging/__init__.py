"""The judges of the three kinds of tests."""
