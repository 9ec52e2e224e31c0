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
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0flexmg')\n",
    ),
    threat("vsock", "RE", "import socket\nsocket.socket(socket.AF_VSOCK)\n"),
    threat("netlink", "RE", "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\n"),
    threat(
        "datagram-pair",
        "RE",
        "import socket\n"
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "a.sendto(b'x', '/tmp/flexmg.sock')\n",
    ),
    threat(
        "stream-pair",
        "AC",
        "import socket\na, b = socket.socketpair()\n"
        "a.sendall(b'1')\nprint(int(input()) + int(b.recv(1)))\n",
    ),
]

KERNEL = [
    threat("ptrace", "WA", LIBC + "import os\nprint(libc.ptrace(16, os.getppid(), 0, 0))\n"),
    threat(
        "reads-another-process",
        "WA",
        LIBC + "import os\nprint(libc.process_vm_readv(os.getppid(), None, 0, None, 0, 0))\n",
    ),
    threat(
        "odd-system-calls",
        "WA",
        LIBC
        + """
# io_uring_setup, bpf, userfaultfd, perf_event_open, keyctl, add_key, memfd_create, unshare, mount,
# setns, chroot, pivot_root, init_module, kexec_load, personality, fanotify_init, name_to_handle_at
numbers = [425, 321, 323, 298, 250, 248, 319, 272, 165, 308, 161, 155, 175, 246, 135, 300, 303]
print([libc.syscall(number, 0, 0, 0, 0, 0) for number in numbers])
print(ctypes.get_errno())
""",
    ),
    threat(
        "pidfd",
        "WA",
        LIBC + "import os\nprint(libc.syscall(434, os.getppid(), 0), libc.syscall(438, 3, 0, 0))\n",
    ),
    threat(
        "clone-with-namespaces",
        "WA",
        LIBC + "print(libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0))\n",
    ),
    threat("vfork", "WA", LIBC + "print(libc.syscall(58))\n"),
    threat(
        "thirty-two-bit-calls",
        "RE",
        """
import ctypes, mmap
# mov eax, 20 (getpid of i386); int 0x80; ret
code = b'\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3'
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
""",
    ),
    threat("x32-calls", "RE", LIBC + "libc.syscall(0x40000000 | 39)\n"),
    threat("dumpable", "WA", LIBC + "print(libc.prctl(4, 1, 0, 0, 0))\n"),
    threat(
        "weaker-filter",
        "WA",
        LIBC + "print(libc.prctl(22, 0, 0, 0, 0), libc.syscall(317, 0, 0, 0))\n",
    ),
    threat("outlives-its-parent", "WA", LIBC + "print(libc.prctl(1, 0, 0, 0, 0))\n"),
    threat("mlock", "WA RE", LIBC + "print(libc.mlockall(3))\n"),
    threat(
        "terminal", "RE WA", "import fcntl, termios\nprint(fcntl.ioctl(0, termios.TIOCSTI, b'x'))\n"
    ),
]
