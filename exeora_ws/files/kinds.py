"""Text or not, by content: the first bytes decide, never the name."""

from exeora_ws.errors import ToolFailed

HEAD_BYTES = 8_000
"""How much of a file is looked at for a NUL: as much as git looks at."""

# Formats whose first bytes no text has; these decide alone.
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"\x7fELF", "ELF program"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (b"\x00asm", "WebAssembly module"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"wOFF", "web font"),
    (b"wOF2", "web font"),
    (b"OggS", "Ogg media"),
    (b"fLaC", "FLAC audio"),
)
# Too short or too wordlike to decide alone; they only name what a NUL has given away.
_HINTS: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xfe\x00\x00", "UTF-32 text"),
    (b"\x00\x00\xfe\xff", "UTF-32 text"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"MZ", "Windows program"),
    (b"BM", "BMP image"),
    (b"RIFF", "RIFF media"),
    (b"ID3", "MP3 audio"),
    (b"II*\x00", "TIFF image"),
    (b"MM\x00*", "TIFF image"),
    (b"\x00\x00\x01\x00", "icon"),
)
_PRINTABLE = bytes(range(32, 256)) + b"\t\n\r\f\x1b"


def find_binary_kind(head: bytes) -> str | None:
    """Name the kind of binary data a file starts with; None for text."""
    for magic, kind in _MAGIC:
        if head.startswith(magic) and not (magic.isascii() and _reads_as_text(head, magic)):
            return kind
    if b"\0" not in head[:HEAD_BYTES]:
        return None
    for magic, kind in _HINTS:
        if head.startswith(magic):
            return kind
    return "MP4 media" if head[4:8] == b"ftyp" else "binary data"


def _reads_as_text(head: bytes, magic: bytes) -> bool:
    """Whether a file that opens with a printable mark is text all the same ("GIF89a is a format…")."""
    sample = head[:HEAD_BYTES]
    return magic != b"%PDF-" and not sample.translate(None, _PRINTABLE) and _is_utf8(sample)


def _is_utf8(sample: bytes) -> bool:
    try:
        sample.decode()
    except UnicodeDecodeError as error:
        return error.start > len(sample) - 4 and len(sample) >= HEAD_BYTES
    return True


def require_text(data: bytes, shown: str) -> None:
    """Refuse binary data.

    Raises:
        ToolFailed: reason `binary`; the message and `data.kind` name the kind.
    """
    kind = find_binary_kind(data)
    if kind is None and b"\0" in data:
        kind = "binary data"
    if kind is not None:
        raise ToolFailed(f"{shown}: is not text but {kind}", reason="binary", data={"kind": kind})
