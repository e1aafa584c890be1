"""Where the data folder and `config.json` are, without importing what `settings.find_places` needs.

A test holds the two equal.
"""

import os
import sys

_APP = "exeora"


def find_data_folder(environ: "os._Environ[str] | dict[str, str]", platform: str = sys.platform) -> "str | None":
    """Give the user's data folder; None where the rule is not a plain one, for the slow way to work out.

    Args:
        environ: the environment; `EXEORA_DATA_DIR`, `XDG_DATA_HOME` and `HOME` count.
        platform: as `sys.platform`.
    """
    chosen = environ.get("EXEORA_DATA_DIR")
    return _plain(chosen) if chosen else _find_own(environ, platform, "XDG_DATA_HOME", "/.local/share")


def find_config_file(environ: "os._Environ[str] | dict[str, str]", platform: str = sys.platform) -> "str | None":
    """Give the user's `config.json`, which need not exist; None where the rule is not a plain one.

    Args:
        environ: the environment; `EXEORA_CONFIG_PATH`, `XDG_CONFIG_HOME` and `HOME` count.
        platform: as `sys.platform`.
    """
    chosen = environ.get("EXEORA_CONFIG_PATH")
    if chosen:
        return _plain(chosen)
    folder = _find_own(environ, platform, "XDG_CONFIG_HOME", "/.config")
    return None if folder is None else folder + "/config.json"


def _plain(chosen: str) -> "str | None":
    return None if chosen.startswith("~") else os.path.abspath(chosen)


def _find_own(environ: "os._Environ[str] | dict[str, str]", platform: str, variable: str, usual: str) -> "str | None":
    """Give our folder where nobody has chosen one: by the XDG variable, or the usual one below HOME."""
    home = environ.get("HOME", "")
    xdg = environ.get(variable, "")
    if platform == "linux" and "ANDROID_DATA" not in environ:
        return _below(xdg or (home and home + usual))
    if platform == "darwin" and not xdg:
        return _below(home and home + "/Library/Application Support")
    return None


def _below(folder: str) -> "str | None":
    plain = folder.startswith("/") and folder == folder.strip() and os.path.normpath(folder) == folder
    return f"{folder}/{_APP}" if plain else None
