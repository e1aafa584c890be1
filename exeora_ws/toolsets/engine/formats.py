"""Which formats a file's name promises: what is not read as text, and what no text may be written to. Pure."""


def _read(extensions: str) -> frozenset[str]:
    return frozenset(extensions.split())


_IMAGES = _read("png jpg jpeg gif webp bmp tif tiff ico icns heic heif avif psd xcf cr2 nef jxl")
_SOUND = _read("mp3 wav flac ogg oga opus m4a aac wma aiff aif mid midi")
_VIDEO = _read("mp4 m4v mov avi mkv webm wmv flv mpg mpeg 3gp ogv")
_ARCHIVES = _read("zip tar gz tgz bz2 tbz2 xz txz zst 7z rar lz lzma cab iso dmg jar war ear whl apk deb rpm")
_DOCUMENTS = _read("pdf doc docx docm odt pages epub mobi")
_SHEETS = _read("xls xlsx xlsm xlsb ods numbers")
_SLIDES = _read("ppt pptx pptm odp")
_FONTS = _read("ttf otf woff woff2 eot ttc")
_COMPILED = _read("o obj a lib so dylib dll exe class pyc pyo wasm bin elf")
_DATABASES = _read("sqlite sqlite3 db db3")
_SCENES = _read("blend glb usdz 3ds umap uasset")

_KINDS: tuple[tuple[frozenset[str], str], ...] = (
    (_IMAGES, "an image"),
    (_SOUND, "audio"),
    (_VIDEO, "video"),
    (_ARCHIVES, "an archive"),
    (_DOCUMENTS, "a document"),
    (_SHEETS, "a spreadsheet"),
    (_SLIDES, "a slide deck"),
    (_FONTS, "a font"),
    (_COMPILED, "compiled code"),
    (_DATABASES, "a database"),
    (_SCENES, "a 3D file"),
)
_NOT_READ = _IMAGES | _SOUND | _VIDEO | _ARCHIVES | _DOCUMENTS | frozenset({"rtf"}) | _SHEETS | _SLIDES
_MARKUP = frozenset({"html", "htm", "xhtml"})
_MARKDOWN = frozenset({"md", "mdx", "markdown"})


def find_extension(path: str) -> str:
    """Give what follows the last dot of the name, in lower case; empty without one."""
    stem, dot, extension = path.rstrip("/").rpartition("/")[2].rpartition(".")
    return extension.lower() if dot and stem else ""


def find_unreadable_kind(path: str) -> str | None:
    """Name the kind of media, document or archive that a path promises; None for what is read as text."""
    extension = find_extension(path)
    return _name(extension, "a document") if extension in _NOT_READ else None


def find_binary_kind(path: str) -> str | None:
    """Name the kind of binary file that a path promises, to which no text may be written; None for any other."""
    return _name(find_extension(path), None)


def _name(extension: str, otherwise: str | None) -> str | None:
    return next((kind for extensions, kind in _KINDS if extension in extensions), otherwise)


def is_scene(path: str) -> bool:
    """Whether a path promises a 3D scene or an engine's asset, which nothing here can make."""
    return find_extension(path) in _SCENES


def is_markup(path: str) -> bool:
    """Whether a path promises HTML."""
    return find_extension(path) in _MARKUP


def is_markdown(path: str) -> bool:
    """Whether a path promises Markdown."""
    return find_extension(path) in _MARKDOWN
