"""What was offered to whom, looked at again now and then: an edited policy file changes it, and nobody tells us."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from exeora_ws.errors import ExeoraError
from exeora_ws.tools.call import AnyTool, Scope

_SCOPES = 64
OFFERS_SECONDS = 2.0
"""How often it is looked, while somebody listens for changes."""

Offered = Callable[[Scope], Sequence[AnyTool]]


class Offers:
    """Remembers the names last offered to each scope. For threads: finding them out reads files.

    Args:
        offered: gives what is offered to a scope now.
    """

    def __init__(self, offered: Offered) -> None:
        self._offered = offered
        self._names: OrderedDict[Scope, tuple[str, ...]] = OrderedDict()

    def list(self, scope: Scope) -> Sequence[AnyTool]:
        """Give what is offered to a scope now, and remember it."""
        tools = self._offered(scope)
        self._names[scope] = tuple(tool.name for tool in tools)
        self._names.move_to_end(scope)
        while len(self._names) > _SCOPES:
            self._names.popitem(last=False)
        return tools

    def remember(self, scope: Scope, names: Sequence[str]) -> None:
        """Take note of what a scope was told before there was a core."""
        self._names[scope] = tuple(names)

    def have_changed(self) -> bool:
        """Whether anything else is offered to anybody than when it was last looked."""
        changed = [scope for scope in list(self._names) if self._has_changed(scope)]
        return bool(changed)

    def _has_changed(self, scope: Scope) -> bool:
        before = self._names.get(scope)
        try:
            return tuple(tool.name for tool in self.list(scope)) != before
        except ExeoraError:  # its project is gone: whoever asks again is told so
            self._names.pop(scope, None)
            return False
