"""Programs that reach for the network and for odd corners of the kernel."""

from __future__ import annotations

from threat import LIBC, threat

NETWORK = [
    threat("tcp", "RE", "import socket\nsocket.create_connection(('127.0.0.1', {port}))\n"),
    threat(
        "udp",
        "RE",
        """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b'x', ('127.0.0.1', {port}))
""",
    ),
    threat("dns", "RE", "import socket\nprint(socket.gethostbyname('localhost'))\n"),
    threat(
        "abstract-unix",
        "RE",
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({abstract!r})\n",
    ),
    threat("vsock", "RE", "import socket\nsocket.socket(socket.AF_VSOCK)\n"),
    threat("netlink", "RE", "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\n"),
    threat(
        "datagram-pair",
        "RE",
        "import socket\n"
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "a.sendto(b'x', {socket!r})\n",
    ),
    threat(
        "stream-pair-elsewhere",
        "RE",
        "import socket\na, b = socket.socketpair()\na.sendto(b'x', {socket!r})\n",
    ),
    threat(
        "network-pair",
        "RE",
        "import socket\nsocket.socketpair(socket.AF_INET, socket.SOCK_STREAM)\n",
    ),
    threat("packets", "RE", "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"),
    threat(
        "descriptors-in-flight",
        "WA RE",
        """
import os, socket
a, b = socket.socketpair()
a.setblocking(False)
sent = 0
try:
    while sent < 100_000:
        socket.send_fds(a, [b'x'], [0, a.fileno(), b.fileno()])
        sent += 1
except OSError:
    pass
print(sent)
""",
    ),
    threat(
        "stream-pair",
        "AC",
        "import socket\na, b = socket.socketpair()\n"
        "a.sendall(b'1')\nprint(int(input()) + int(b.recv(1)))\n",
    ),
]

KERNEL = [
    threat("ptrace", "WA", LIBC + "attempt(libc.ptrace, 16, os.getppid(), 0, 0)\n"),
    threat(
        "reads-another-process",
        "WA",
        LIBC + "attempt(libc.process_vm_readv, os.getppid(), None, 0, None, 0, 0)\n",
    ),
    threat("dumpable", "WA", LIBC + "attempt(libc.prctl, 4, 1, 0, 0, 0)\n"),
    threat(
        "weaker-filter",
        "WA",
        LIBC + "attempt(libc.prctl, 22, 2, 0, 0, 0)\n",
    ),
    threat("reaps-for-others", "WA", LIBC + "attempt(libc.prctl, 36, 1, 0, 0, 0)\n"),
    threat("may-be-traced", "WA", LIBC + "attempt(libc.prctl, 0x59616D61, -1, 0, 0, 0)\n"),
    threat("outlives-its-parent", "WA", LIBC + "attempt(libc.prctl, 1, 0, 0, 0, 0)\n"),
    threat("host-name", "WA", LIBC + "attempt(libc.sethostname, b'x', 1)\n"),
    threat("clock", "RE", "import time\ntime.clock_settime(time.CLOCK_REALTIME, 0)\n"),
    threat("mlock", "WA", LIBC + "attempt(libc.mlockall, 3)\n"),
    threat("terminal", "WA", LIBC + "attempt(libc.ioctl, 0, 0x5412, b'x')\n"),
    threat(
        "terminal-of-high-bits",
        "WA",
        LIBC + "attempt(libc.ioctl, 0, ctypes.c_long(1 << 32 | 0x5412))\n",
    ),
]
