"""Programs that read, write or change what is not theirs."""

from __future__ import annotations

from threat import LIBC, threat

FILES = [
    threat("reads-a-secret", "RE", "print(open({secret!r}).read())\n"),
    threat("reads-passwd", "RE", "print(open('/etc/passwd').read())\n"),
    threat("lists-root", "RE", "import os\nprint(os.listdir('/'), os.listdir('.'))\n"),
    threat(
        "reads-memory-of-its-parent",
        "RE",
        "import os\nprint(open(f'/proc/{{os.getppid()}}/mem', 'rb'))\n",
    ),
    threat("reads-environment", "RE", "print(open('/proc/self/environ').read())\n"),
    threat(
        "scans-processes",
        "WA RE",
        """
import os
found = []
for pid in range(1, 5000):
    try:
        found.append(open(f'/proc/{{pid}}/cmdline').read())
    except OSError:
        pass
print(len(found))
""",
    ),
    threat("writes-tmp", "RE", "open({marker!r}, 'w').write('x')\n"),
    threat("writes-shm", "RE", "open('/dev/shm/flexmg-marker', 'w').write('x')\n"),
    threat("writes-here", "RE", "open('marker', 'w').write('x')\n"),
    threat("writes-root", "RE", "open('/marker', 'w').write('x')\n"),
    threat("poisons-the-library", "RE", "import os\nopen(os.__file__, 'a').write('x')\n"),
    threat(
        "shared-memory",
        "RE",
        "from multiprocessing import shared_memory\n"
        "shared_memory.SharedMemory('marker', create=True, size=10)\n",
    ),
    threat("system-v-memory", "WA", LIBC + "print(libc.shmget(4242, 4096, 0o1666))\n"),
    threat(
        "message-queue",
        "WA",
        LIBC + "print(libc.msgget(4242, 0o1666), libc.mq_open(b'/x', 66, 438, None))\n",
    ),
    threat("changes-a-mode", "RE", "import os\nos.chmod({secret!r}, 0o777)\n"),
    threat("changes-times", "RE", "import os\nos.utime({secret!r})\n"),
    threat("changes-attributes", "RE", "import os\nos.setxattr({secret!r}, 'user.x', b'1')\n"),
    threat("symlink", "RE", "import os\nos.symlink({secret!r}, '/tmp/flexmg-link')\n"),
    threat("hard-link", "RE", "import os\nos.link({secret!r}, '/tmp/flexmg-link')\n"),
    threat("removes", "RE", "import os\nos.unlink({secret!r})\n"),
    threat(
        "file-locks",
        "RE",
        """
import fcntl, os
with open(os.__file__) as file:
    fcntl.lockf(file, fcntl.LOCK_SH)
""",
    ),
    threat("flock", "RE", "import fcntl, os\nfcntl.flock(open(os.__file__), fcntl.LOCK_EX)\n"),
    threat("unseals-its-input", "RE", "import os\nos.ftruncate(0, 0)\n"),
    threat("writes-its-input", "RE", "import os\nos.pwrite(0, b'99', 0)\n"),
    threat("temporary-file", "RE", "import tempfile\ntempfile.TemporaryFile().write(b'x')\n"),
]
