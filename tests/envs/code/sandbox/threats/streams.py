"""Programs with odd output or odd source."""

from __future__ import annotations

from threat import ANSWER, threat

OUTPUT = [
    threat("flood", "OLE", "while True:\n    print('x' * 1000)\n"),
    threat(
        "flood-of-errors",
        "OLE RE TLE",
        "import sys\nwhile True:\n    sys.stderr.write('x' * 1000)\n",
    ),
    threat(
        "flood-unbuffered", "OLE RE", "import os\nwhile True:\n    os.write(1, b'x' * 100_000)\n"
    ),
    threat(
        "flood-deaf-to-the-signal",
        "OLE RE TLE",
        """
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
while True:
    try:
        os.write(1, b'x' * 100_000)
    except OSError:
        pass
""",
    ),
    threat("sparse", "OLE RE", "import os\nos.lseek(1, 1 << 40, 0)\nos.write(1, b'x')\n"),
    threat("much-but-allowed", "WA", "print('x' * 900_000)\n"),
    threat("exactly-the-limit", "WA", "import sys\nsys.stdout.write('x' * (1 << 20))\n"),
    threat("binary", "WA", "import sys\nsys.stdout.buffer.write(bytes(range(128, 256)))\n"),
    threat("surrogates", "RE", "print('\\ud83d')\n"),
    threat(
        "own-output-truncated",
        "AC",
        """
import os, sys
os.write(1, b'junk')
os.ftruncate(1, 0)
os.lseek(1, 0, 0)
print(int(input()) + 1)
""",
    ),
    threat("streams-closed", "WA RE", "import os\nos.close(0)\nos.close(1)\nos.close(2)\n"),
    threat("every-descriptor-closed", "WA RE", "import os\nos.closerange(0, 4096)\n"),
    threat("one-more-than-the-limit", "OLE", "print('x' * (1 << 20))\n"),
    threat("grows-its-output-without-writing", "OLE RE", "import os\nos.ftruncate(1, 1 << 40)\n"),
    threat(
        "output-through-a-mapping",
        "WA RE",
        "import mmap, os\nos.ftruncate(1, 4096)\nmmap.mmap(1, 4096).write(b'x' * 4096)\n",
    ),
    threat("output-swapped-with-errors", "WA", "import os\nos.dup2(2, 1)\n" + ANSWER),
    threat("output-swapped-with-input", "RE", "import os\nos.dup2(0, 1)\n" + ANSWER),
    threat(
        "output-is-not-waited-for",
        "AC",
        "import os\nos.set_blocking(0, False)\nos.set_blocking(1, False)\n" + ANSWER,
    ),
    threat("ends-of-lines", "WA", "import sys\nsys.stdout.write('4\\r2\\x0b\\x1e')\n"),
    threat("nothing-but-nul", "WA", "import sys\nsys.stdout.write('42\\0')\n"),
    threat("stdout-replaced", "WA", "import sys, io\nsys.stdout = io.StringIO()\n" + ANSWER),
]

SOURCES = [
    threat("nul", "SE", "print(1)\0print(2)\n"),
    threat("not-utf8", "SE", b"print('\xff\xfe')\n"),
    threat("surrogate-in-source", "SE", "print('\ud800')\n"),
    threat("odd-codec", "SE RE WA", "# -*- coding: rot13 -*-\ncevag(42)\n"),
    threat("unknown-codec", "SE", "# -*- coding: klingon -*-\nprint(42)\n"),
    threat("latin1-cookie", "WA", b"# -*- coding: latin-1 -*-\nprint('\xe9')\n"),
    threat("syntax", "SE", "def f(:\n"),
    threat("empty", "WA", ""),
    threat("ten-megabytes", "AC", "#" * (10 << 20) + "\n" + ANSWER),
    threat("byte-order-mark", "AC", "\ufeff" + ANSWER),
    threat("null-statement-bomb", "WA MLE TLE RE SE", ";".join(["0"] * 300_000) + "\n"),
    threat("number-of-a-million-digits-in-source", "AC TLE", "x = " + "7" * 10**6 + "\n" + ANSWER),
    threat("attribute-of-attributes", "RE SE MLE TLE", "x" + ".x" * 100_000 + "\n"),
    threat("sum-of-many", "WA RE SE MLE TLE", "0" + "+0" * 100_000 + "\n"),
    threat("blocks-in-blocks", "SE", "".join(" " * n + "if 1:\n" for n in range(200)) + "\n"),
    threat("texts-in-texts", "SE RE WA", "f'" + '{f"' * 200 + "\n"),
    threat("never-closed", "SE", "x = '''\n" + "x\n" * 100_000),
    threat("utf16", "SE", ANSWER.encode("utf-16")),
    threat("mark-against-cookie", "SE", b"\xef\xbb\xbf# coding: latin-1\nprint(42)\n"),
    threat("utf7", "SE RE WA AC", "# coding: utf-7\nprint+ACg-42+ACk-\n"),
    threat("escapes-as-codec", "SE RE WA AC", "# coding: unicode_escape\n\\x70rint(42)\n"),
    threat("codec-that-fails", "SE RE", "# coding: undefined\nprint(42)\n"),
    threat("only-a-cookie", "WA SE", "# coding: utf-8"),
    threat("form-feeds", "AC", "\f" + ANSWER + "\f\n"),
    threat("names-in-disguise", "AC", "\uff50\uff52\uff49\uff4e\uff54(int(input()) + 1)\n"),
]
