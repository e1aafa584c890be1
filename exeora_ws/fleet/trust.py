"""By what a server's certificate is judged, and that there is one."""

import ssl
from dataclasses import dataclass
from typing import Any


class Guarded(ssl.SSLContext):
    """Knows whether it has been used: the library goes on in plain text when a server says that it has no TLS."""

    used = False

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Begin TLS; what asyncio calls."""
        self.used = True
        return super().wrap_bio(*arguments, **options)


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom to take for a server of the fleet.

    Args:
        authority: certificates (PEM) that the server's own must come from; the system's when None.
        pinned: the authority is the server's own certificate: no other will do, and its name does not matter.
    """

    authority: str | None = None
    pinned: bool = False

    def make_context(self, url: str) -> Guarded | None:
        """Give what one connection to this url is judged by; None where it is not over TLS."""
        if not url.startswith("tls://"):
            return None
        context = Guarded(ssl.PROTOCOL_TLS_CLIENT)
        if self.authority is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(cadata=self.authority)
        if self.pinned:
            context.check_hostname = False
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context


SYSTEM = Trust()
