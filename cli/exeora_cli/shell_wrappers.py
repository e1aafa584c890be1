"""The shell functions of `exeora shell-init`: run the real `exeora`, then go where its directive file says."""

_POSIX = """\
exeora() {
  local directive code target
  directive="$(mktemp "${TMPDIR:-/tmp}/exeora.XXXXXXXXXX")" || { command exeora "$@"; return; }
  EXEORA_DIRECTIVE_FILE="$directive" command exeora "$@"
  code=$?
  target="$(cat "$directive"; printf x)"
  command rm -f "$directive"
  target="${target%x}"
  case "$target" in
    "cd "?*) builtin cd -- "${target#cd }" || code=1 ;;
  esac
  return "$code"
}
"""

_FISH = """\
function exeora --description "Git workspaces for people and for agents"
    set -l folder /tmp
    set -q TMPDIR; and set folder $TMPDIR
    set -l directive (mktemp "$folder/exeora.XXXXXXXXXX")
    or begin
        command exeora $argv
        return
    end
    EXEORA_DIRECTIVE_FILE=$directive command exeora $argv
    set -l code $status
    set -l target (string collect < $directive)
    command rm -f $directive
    if string match --quiet -- "cd *" "$target"
        builtin cd -- (string sub --start 4 -- "$target" | string collect)
        or set code 1
    end
    return $code
end
"""

_POWERSHELL = """\
function exeora {
    $directive = [System.IO.Path]::GetTempFileName()
    $real = (Get-Command exeora -CommandType Application | Select-Object -First 1).Source
    $before = $env:EXEORA_DIRECTIVE_FILE
    try {
        $env:EXEORA_DIRECTIVE_FILE = $directive
        if ($MyInvocation.ExpectingInput) { $input | & $real @args } else { & $real @args }
        $code = $LASTEXITCODE
        $target = [System.IO.File]::ReadAllText($directive)
        if ($target.StartsWith('cd ')) { Set-Location -LiteralPath $target.Substring(3) }
    } finally {
        $env:EXEORA_DIRECTIVE_FILE = $before
        Remove-Item -Force -LiteralPath $directive -ErrorAction SilentlyContinue
    }
    $global:LASTEXITCODE = $code
}
"""

WRAPPERS = {"bash": _POSIX, "zsh": _POSIX, "fish": _FISH, "powershell": _POWERSHELL}
