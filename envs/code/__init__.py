"""The code domain: programs as answers, run in a sandbox and judged by their tests."""
