"""Programs that call the kernel by number, or in machine code, of x86_64."""

from __future__ import annotations

from threat import LIBC, threat

X86_64 = [
    threat(
        "odd-system-calls",
        "WA",
        LIBC
        + """
# io_uring_setup, bpf, userfaultfd, perf_event_open, keyctl, add_key, memfd_create, unshare, mount,
# setns, chroot, pivot_root, init_module, kexec_load, personality, fanotify_init, name_to_handle_at
numbers = [425, 321, 323, 298, 250, 248, 319, 272, 165, 308, 161, 155, 175, 246, 135, 300, 303]
done = [number for number in numbers if not refused(libc.syscall, number, 0, 0, 0, 0, 0)]
print(42 if done else 'refused')
""",
    ),
    threat(
        "pidfd",
        "WA",
        LIBC + "attempt(libc.syscall, 434, os.getppid(), 0)\n",
    ),
    threat(
        "clone-with-namespaces",
        "WA",
        LIBC + "attempt(libc.syscall, 56, 0x10000000 | 17, 0, 0, 0, 0)\n",
    ),
    threat(
        "thread-with-namespaces",
        "WA",
        LIBC + "attempt(libc.syscall, 56, 0x10000000 | 0x10F00, 0, 0, 0, 0)\n",
    ),
    threat("vfork", "WA", LIBC + "attempt(libc.syscall, 58)\n"),
    threat("clone3", "WA", LIBC + "print(42 if libc.syscall(435, 0, 0) != -1 else 'missing')\n"),
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
    threat("call-minus-one", "RE WA", LIBC + "print(libc.syscall(ctypes.c_long(-1), 0, 0, 0))\n"),
    threat(
        "every-other-call",
        "WA",
        LIBC
        + """
# None of the calls that a program may make is among them, nor one that ends it.
numbers = [29, 30, 31, 41, 42, 43, 49, 50, 57, 58, 59, 64, 65, 66, 67, 68, 69, 70, 71, 73, 76]
numbers += [80, 81, *range(82, 89), *range(90, 96), 101, 103, 105, 106, 109, 112, 113, 114, 116]
numbers += [117, 119, 122, 123, 126, 129, *range(132, 137), 139, 141, 142, 144]
numbers += [*range(149, 157), *range(158, 186), *range(187, 202), 203, *range(205, 217), 220]
numbers += [*range(235, 247), *range(248, 257), *range(258, 262), *range(263, 267), 268, 272]
numbers += [*range(275, 281), 298, *range(299, 302), *range(303, 309), *range(310, 318)]
numbers += [319, 320, 321, 322, 323, *range(325, 332), 333, *range(424, 435), 437, 438]
numbers += [440, *range(442, 470), 1000, 4000, 1 << 29]
done = [number for number in numbers if not refused(libc.syscall, number, -1, 0, 0, 0, 0)]
print(42 if done else 'refused')
""",
    ),
    threat(
        "old-gate",
        "WA RE",
        LIBC + "print(ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(0xFFFFFFFFFF600400)(0))\n",
    ),
    threat("x32-calls", "RE", LIBC + "libc.syscall(0x40000000 | 39)\n"),
    threat(
        "odd-lists-of-the-kernel",
        "AC WA RE",
        LIBC
        + """
libc.syscall(273, ctypes.c_void_p(8), ctypes.c_size_t(24))
libc.syscall(218, ctypes.c_void_p(8))
libc.syscall(334, ctypes.c_void_p(64), 32, 0, 0x53053053)
print(int(input()) + 1, flush=True)
""",
    ),
    threat(
        "barriers", "AC TLE", LIBC + "for _ in range(100): libc.syscall(324, 1, 0, 0)\nprint(42)\n"
    ),
    threat(
        "signals-a-thread-of-another",
        "WA",
        LIBC + "attempt(libc.syscall, 234, os.getppid(), os.getppid(), 9)\n",
    ),
    threat(
        "main-thread-leaves",
        "TLE",
        LIBC
        + """
import threading
def spin():
    while True:
        pass
threading.Thread(target=spin).start()
libc.syscall(60, 0)
""",
    ),
    threat(
        "main-thread-leaves-a-sleeper",
        "IDLE",
        LIBC + "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "libc.syscall(60, 0)\n",
    ),
]
