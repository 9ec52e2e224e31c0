"""Everything that confines a child, in the order in which it has to be done.

What is the same for every child the zygote takes upon itself, once, and its children inherit
it: namespaces, fixed limits, Landlock, the loss of capabilities. What a zygote cannot do
without (fork, to begin with) its children lose by themselves.
"""

from __future__ import annotations

import os
from functools import partial

from . import privileges
from .landlock import Ruleset
from .privileges import READ_ANY_FILE
from .seccomp import Filter


class Confinement:
    """Confines the calling zygote as far as it can be, then each of its children for good.

    Args:
        isolation: ``"strict"``; or ``"unsafe"``: limits only, no confinement.
        files: who keeps the files shut: ``"landlock"``, or ``"bwrap"`` when the zygote itself
            runs in a bubblewrap.
        uid: the first of a worker's unused uids, one of which children take if this process is
            root. They read the standard library by a capability where that uid cannot. Where
            root cannot do that (in some containers), children stay who they are, without
            capabilities; and if that is the host's root, the number of their threads has no
            limit.

    Attributes:
        namespaces: those that the zygote entered.
        uid: the uid that children take, None if they stay who they are.

    Raises:
        OSError: an ingredient is missing; the message names it.
    """

    def __init__(self, isolation: str, files: str, uid: int) -> None:
        self.strict = isolation == "strict"
        self.uid: int | None = None
        self.namespaces: tuple[str, ...] = ()
        self._zygote = os.getpid()
        self._capabilities = 0
        self._tasks: int | None = None
        self._filter: Filter | None = None
        privileges.fix_limits()
        if not self.strict:
            return
        if privileges.succeeds(privileges.enter_namespaces):
            self.namespaces = privileges.enter_namespaces()
        if os.geteuid() == 0:
            self._choose_uid(privileges.drawn_uid(uid))
        if self.uid is None:
            privileges.drop_capabilities()
            self._tasks = privileges.tasks_allowed()
        self._filter = Filter()
        if files == "landlock":
            ruleset = Ruleset()
            ruleset.restrict()
            ruleset.close()

    def _choose_uid(self, uid: int) -> None:
        def read_library_as(kept: int) -> None:
            privileges.become(uid, kept)
            os.close(os.open(os.__file__, os.O_RDONLY))

        for kept in (0, READ_ANY_FILE):
            if privileges.succeeds(partial(read_library_as, kept)):
                self.uid, self._capabilities, self._tasks = uid, kept, privileges.TASKS
                return

    def apply(self, *, address_space: int, cpu_s: int, output: int) -> None:
        """Confine the calling process for good; the arguments are those of ``set_limits``.

        Raises:
            OSError: the kernel refuses, or the zygote is gone; nothing of the program has run.
        """
        privileges.set_limits(
            address_space=address_space, cpu_s=cpu_s, output=output, tasks=self._tasks
        )
        if self.uid is not None:
            privileges.become(self.uid, self._capabilities)
            privileges.hide_memory()
        # A change of uid clears it: so not before.
        privileges.end_with_parent()
        if os.getppid() != self._zygote:
            raise ProcessLookupError("the zygote ended before its child could be tied to it")
        if self._filter is not None:
            self._filter.install(os.getpid())
