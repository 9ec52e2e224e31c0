"""Everything that confines a child, in the order in which it has to be done.

What is the same for every child the zygote takes upon itself, once, and its children inherit
it: namespaces, fixed limits, Landlock, the loss of capabilities. What a zygote cannot do
without (fork, to begin with) its children lose by themselves.
"""

from __future__ import annotations

import os

from . import privileges
from .landlock import Ruleset
from .seccomp import Filter


class Confinement:
    """Confines the calling zygote as far as it can be, then each of its children for good.

    Args:
        isolation: ``"strict"``; or ``"unsafe"``: limits only, no confinement.
        files: who keeps the files shut: ``"landlock"``, or ``"bwrap"`` when the zygote itself
            runs in a bubblewrap.
        uid: an unused uid that children take, if this process is root and that uid can read
            the standard library. Otherwise they stay who they are, without capabilities.

    Attributes:
        namespaces: those that the zygote entered.

    Raises:
        OSError: an ingredient is missing; the message names it.
    """

    def __init__(self, isolation: str, files: str, uid: int) -> None:
        self.strict = isolation == "strict"
        self.uid: int | None = None
        self.namespaces: tuple[str, ...] = ()
        self._filter: Filter | None = None
        privileges.fix_limits()
        if not self.strict:
            return
        self.namespaces = privileges.enter_namespaces()
        if os.geteuid() == 0 and privileges.can_read_as(uid, [os.__file__]):
            self.uid = uid
        else:
            privileges.drop_capabilities()
        self._filter = Filter()
        if files == "landlock":
            ruleset = Ruleset()
            ruleset.restrict()
            ruleset.close()

    def apply(self, *, address_space: int, cpu_s: int, output: int) -> None:
        """Confine the calling process for good; the arguments are those of ``set_limits``.

        Raises:
            OSError: the kernel refuses; nothing of the program has run.
        """
        privileges.set_limits(address_space=address_space, cpu_s=cpu_s, output=output)
        if self.uid is not None:
            privileges.become(self.uid)
            privileges.drop_capabilities()
            privileges.hide_memory()
        # A change of uid clears it: so not before.
        privileges.end_with_parent()
        if self._filter is not None:
            self._filter.install(os.getpid())
