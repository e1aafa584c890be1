"""What each reason in an error of the file tools means (the docs list them)."""

PATHS = {
    "absolute_path": "an absolute path, even of a file in the workspace",
    "outside_root": "the path leads out of the workspace, as written or through a link",
    "dangling_link": "a link on the way leads to nothing",
    "not_a_folder": "something on the way, or what was to be listed, is not a folder",
    "link_loop": "the links on the way lead in a circle",
    "link_swapped": "the file was replaced by a link while it was being opened",
    "invalid_path": "the path holds a NUL or half a character",
    "empty_path": "the path is empty",
    "name_too_long": "a name of more than 255 bytes, or a path of more than 4,096",
    "permission_denied": "the file system does not allow it",
    "io_error": "the system could not read or write; the message has its words",
    "folder_missing": "the workspace's folder is not there any more",
}
NOT_A_FILE = {
    "is_a_folder": "a folder where a file is wanted",
    "is_a_fifo": "a FIFO: never opened",
    "is_a_socket": "a socket: never opened",
    "is_a_device": "a device: never opened",
    "binary": "not text; `data.kind` names what it is",
}
WRITES = {
    "git_folder": "Git's own folder, under any name a file system takes for it",
    "policy_file": "`exeora.toml` holds the policy; a person edits it",
    "read_only_root": "`~/.agents` is read, never written",
    "user_folder": "`~/.agents` is read, never written, also where a project holds it",
    "read_only": "the file's own mode forbids writing",
    "read_only_file_system": "the file system is mounted read only",
    "ownership": "the file's owner could not be kept",
    "stale": "the file changed meanwhile; nothing was overwritten",
    "busy": "another exeora holds the file for more than 30 s",
    "lock_failed": "the data folder has no room, or no permission, for a lock file",
    "disk_full": "no room; the old file is untouched",
    "not_unicode": "a text holds half a surrogate pair",
    "exists": "something is there already",
}
EDITS = {
    "no_match": "the old text does not stand there; `data.nearest` has the lines most like it, `data.alreadyApplied` "
    "says that the new text is there already",
    "ambiguous_match": "it stands there more than once; `data.lines` has the line numbers",
    "empty_old_text": "the old text is empty",
    "nothing_to_change": "the old and the new text are the same",
    "not_utf8": "the file is not UTF-8 and stays as it is",
    "too_large": "more than 50,000,000 bytes",
}
SEARCHES = {
    "invalid_glob": "the glob means nothing",
    "search_timeout": "longer than 60 s",
    "ripgrep_missing": "ripgrep cannot be started; see `EXEORA_RG`",
    "search_failed": "ripgrep failed; `data.stderr` has its words",
}
