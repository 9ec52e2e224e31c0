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
print(42 if found else 0)
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
    threat("system-v-memory", "WA", LIBC + "attempt(libc.shmget, 4242, 4096, 0o1666)\n"),
    threat(
        "message-queue",
        "WA",
        LIBC + "attempt(libc.msgget, 4242, 0o1666)\n",
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
    threat("maps-its-input", "RE", "import mmap\nmmap.mmap(0, 2)[0:2] = b'99'\n"),
    threat("seals-its-input", "RE", "import fcntl\nfcntl.fcntl(0, fcntl.F_ADD_SEALS, 1)\n"),
    threat("reopens-its-input", "RE", "open('/proc/self/fd/0', 'r+b', 0).write(b'99')\n"),
    threat("leases-a-file", "RE", "import fcntl, os\nfcntl.fcntl(open(os.__file__), 1024, 0)\n"),
    threat("unseals-its-input", "RE", "import os\nos.ftruncate(0, 0)\n"),
    threat("writes-its-input", "RE", "import os\nos.pwrite(0, b'99', 0)\n"),
    threat("writes-its-memory", "RE", "open('/proc/self/mem', 'r+b')\n"),
    threat("fears-no-killer", "RE", "open('/proc/self/oom_score_adj', 'w').write('-1000')\n"),
    threat("sets-the-kernel", "RE", "open('/proc/sys/kernel/core_pattern', 'w').write('|x')\n"),
    threat("reads-the-disk", "RE", "open('/dev/vda', 'rb')\n"),
    threat("reads-the-machine", "RE", "open('/sys/kernel/mm/transparent_hugepage/enabled')\n"),
    threat("changes-folder", "RE", "import os\nos.chdir('/tmp')\n"),
    threat(
        "reads-from-a-path-alone",
        "RE",
        "import os\nfd = os.open({secret!r}, os.O_PATH)\nprint(os.read(fd, 100))\n",
    ),
    threat(
        "reads-beside-a-folder",
        "RE",
        """
import os
name = {secret!r}
fd = os.open(os.path.dirname(name), os.O_PATH)
print(os.read(os.open(os.path.basename(name), os.O_RDONLY, dir_fd=fd), 100))
""",
    ),
    threat(
        "climbs-out-of-the-library",
        "RE",
        "import os\nprint(open(os.path.dirname(os.__file__) + '/..' * 20 + {secret!r}).read())\n",
    ),
    threat("truncates", "RE", "import os\nos.truncate({secret!r}, 0)\n"),
    threat("renames", "RE", "import os\nos.rename({secret!r}, {marker!r})\n"),
    threat("makes-a-folder", "RE", "import os\nos.mkdir({marker!r})\n"),
    threat("makes-a-pipe", "RE", "import os\nos.mkfifo({marker!r})\n"),
    threat("makes-a-device", "RE", "import os, stat\nos.mknod({marker!r}, stat.S_IFCHR | 438)\n"),
    threat("writes-to-null", "AC", "open('/dev/null', 'w').write('x')\nprint(int(input()) + 1)\n"),
    threat("temporary-file", "RE", "import tempfile\ntempfile.TemporaryFile().write(b'x')\n"),
]
