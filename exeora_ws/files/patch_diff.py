"""One diff of a whole patch, in git's own form, so that `git apply` takes it."""

import os
import stat as modes

from exeora_ws.errors import ExeoraError
from exeora_ws.files.difference import Diff, diff_with_header, quote_name
from exeora_ws.files.overlay import After, Before, Key, Overlay
from exeora_ws.files.paths import show
from exeora_ws.files.root import Root
from exeora_ws.files.sizes import count_diff_bytes
from exeora_ws.limits import DIFF_BYTES, SNAPSHOT_FILE_BYTES


def diff_patch(root: Root, overlay: Overlay) -> Diff:
    """Compare every path of a patch before and after, at most as long as a result may be."""
    parts: list[str] = []
    room = DIFF_BYTES
    moved = {after.source for key, after in overlay.after.items() if after.source not in (None, key)}
    for key, after in overlay.after.items():
        before = overlay.before[key]
        if key in moved and after.absent:
            continue  # shown where it went
        part = _diff_one(root, overlay, before, after, room)
        parts.append(part.text)
        room -= count_diff_bytes(part.text)
        if part.truncated or room <= 0:
            return Diff("".join(parts), truncated=True)
    return Diff("".join(parts), truncated=False)


def _diff_one(root: Root, overlay: Overlay, before: Before, after: After, room: int) -> Diff:
    path = show("/".join(before.key))
    moved = after.source is not None and after.source != before.key
    origin = show("/".join(after.source)) if moved and after.source else path
    old = _load(root, after.source if moved and after.source else before.key) if _had(overlay, before, after) else None
    new = None if after.absent else after.content if after.content is not None else old
    header = f"diff --git {_plain('a/' + origin)} {_plain('b/' + path)}\n"
    if moved:
        header += f"rename from {_plain(origin)}\nrename to {_plain(path)}\n"
    elif before.stat is None:
        header += "new file mode 100644\n"
    elif after.absent:
        header += f"deleted file mode {_git_mode(before.stat.st_mode)}\n"
    if old == new and not moved and before.stat is not None:
        return Diff("", truncated=False)
    body = diff_with_header(path, old, new, header, max_bytes=room)
    return Diff(
        body.text.replace(f"--- {quote_name('a/' + path)}", f"--- {quote_name('a/' + origin)}", 1), body.truncated
    )


def _had(overlay: Overlay, before: Before, after: After) -> bool:
    source = after.source
    return before.stat is not None or (source is not None and overlay.before[source].stat is not None)


def _plain(name: str) -> str:
    return quote_name(name).rstrip("\t")


def _git_mode(mode: int) -> str:
    if modes.S_ISLNK(mode):
        return "120000"
    return "100755" if mode & 0o100 else "100644"


def _load(root: Root, key: Key) -> bytes:
    """Read what is on disk, a link's target for a link; what is too large or closed is shown as binary."""
    try:
        with root.locate_real(key) as spot:
            if spot.is_link:
                return os.fsencode(os.readlink(spot.name, dir_fd=spot.descriptor))
            with open(spot.open_file(), "rb") as stream:
                if os.fstat(stream.fileno()).st_size > SNAPSHOT_FILE_BYTES:
                    return b"\0"
                return stream.read(SNAPSHOT_FILE_BYTES)
    except ExeoraError:
        return b"\0"
