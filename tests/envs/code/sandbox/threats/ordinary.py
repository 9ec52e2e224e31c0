"""Ordinary programs that any judge must pass."""

from __future__ import annotations

from threat import ANSWER, threat

BASELINE = [
    threat("ok", "AC", ANSWER),
    threat(
        "ok-imports",
        "AC",
        """
import asyncio, bisect, collections, concurrent.futures, contextlib, copy, dataclasses
import datetime, decimal, enum, fractions, functools, hashlib, heapq, io, itertools, json
import logging, math, operator, os, queue, random, re, statistics, string, struct, sys
import tempfile, textwrap, threading, time, types, typing, unittest, uuid, xml.dom.minidom
import zlib, array, pickle, csv, calendar, difflib

async def add(n):
    await asyncio.sleep(0)
    return n + 1

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    numbers = list(pool.map(lambda k: k, range(50)))
print(asyncio.run(add(int(sys.stdin.buffer.readline()))))
""",
    ),
    threat(
        "ok-thread",
        "AC",
        """
import sys, threading
sys.setrecursionlimit(200_000)
threading.stack_size(128 << 20)
def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)
def main():
    assert depth(50_000) == 50_000
    print(int(input()) + 1)
thread = threading.Thread(target=main)
thread.start()
thread.join()
""",
    ),
    threat("crlf", "AC", "import sys\nsys.stdout.buffer.write(b'42  \\r\\n')\n"),
    threat("stdin-reopened", "AC", "print(int(open(0).read()) + 1)\n"),
    threat("main-block", "AC", "if __name__ == '__main__':\n    print(int(input()) + 1)\n"),
    threat("exit-in-the-end", "AC", ANSWER + "import sys\nsys.exit()\n"),
]
