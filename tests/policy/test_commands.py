"""Commands against lists: the ways around a list that people try, each refused; and what must still pass."""

import pytest
from exeora_ws.policy.commands import judge_command
from exeora_ws.policy.layer import parse_layer
from exeora_ws.policy.rules import OPEN, Origin, Policy


def policy(**keys) -> Policy:
    layer = parse_layer(keys, Origin.PROJECT, str)
    assert not layer.policy.faults
    return layer.policy


DENY_SUDO = policy(deny=["sudo"], shell=True)
DENY_PUSH = policy(deny=["git push *", "rm -rf /"], shell=True)
ALLOW_GIT = policy(mode="allow_list", allow=["git"], shell=True)
ALLOW_STATUS = policy(mode="allow_list", allow=["git status", "npm run *", "make"], shell=True)

PAST_DENY_SUDO = [
    # another spelling of the name
    "sudo",
    "sudo ls",
    "/usr/bin/sudo ls",
    "../../usr/bin/sudo ls",
    "./sudo",
    "~/bin/sudo",
    "//usr//bin//sudo",
    "SUDO ls",
    "Sudo ls",
    '"sudo" ls',
    "'sudo' ls",
    '"su"do ls',
    "su'do' ls",
    "s\\udo ls",
    "\\sudo ls",
    "su\\\ndo ls",
    "''sudo",
    "$'sudo'",
    "$'\\x73udo'",
    '$"sudo"',
    "su$x''do",
    "${x:-sudo}",
    "{sudo,ls}",
    "su?o",
    "/usr/bin/sud[o]",
    "s*do",
    "$(echo sudo) ls",
    "`echo sudo` ls",
    "$SUDO ls",
    '"$@"',
    "~+/sudo",
    # in front of it
    "X=1 sudo ls",
    "X=1 Y=2 sudo",
    "A= sudo",
    "A='1 2' sudo",
    "> f sudo",
    "< f sudo ls",
    "2>&1 sudo",
    "! sudo",
    "A+=1 sudo",
    "A[0]=1 sudo",
    # wrappers
    "env sudo ls",
    "env -i X=1 sudo",
    "env -u A -- sudo",
    "env -S 'sudo ls'",
    "env --split-string='sudo ls'",
    "/usr/bin/env sudo",
    "timeout 1 sudo",
    "timeout -s KILL 1 sudo",
    "timeout --signal=KILL 1 sudo",
    "timeout -k5 1 sudo",
    "nice sudo",
    "nice -n 5 sudo",
    "nice -5 sudo",
    "nohup sudo",
    "nohup nice env timeout 5 sudo",
    "setsid sudo",
    "setsid -w sudo",
    "stdbuf -oL sudo",
    "time sudo",
    "time -p sudo",
    "command sudo",
    "command -p sudo",
    "builtin command sudo",
    "exec sudo",
    "exec -a ls sudo",
    "ionice -c 3 sudo",
    "chrt -f 1 sudo",
    "taskset -c 0 sudo",
    "chroot / sudo",
    "doas sudo",
    "busybox sudo",
    "busybox env sudo",
    "coproc sudo",
    "watch sudo",
    "script -c sudo",
    "flock f sudo",
    "strace sudo",
    "tmux new sudo",
    "su -c sudo",
    "parallel sudo ::: x",
    "unshare sudo",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/sudo",
    "systemd-run sudo",
    "ENV sudo",
    "xargs sudo",
    "echo x | xargs sudo",
    "xargs -0 -n 1 sudo",
    "xargs -I{} sudo {}",
    "echo sudo | xargs env",
    "echo sudo | xargs -I{} {} ls",
    "echo sudo | xargs -i sh -c {}",
    "echo sudo | xargs sh -c",
    "xargs --max-args=1 sudo",
    "find . -exec sudo {} ;",
    "find . -exec sudo {} \\;",
    "find . -execdir sudo {} +",
    "find . -ok sudo {} \\;",
    "find . -exec {} \\;",
    "find . -name x -exec true \\; -exec sudo \\;",
    'find . "$X" sudo \\;',
    # shells in shells
    "sh -c sudo",
    "sh -c 'sudo ls'",
    "bash -c 'sudo ls'",
    "bash -lc 'ls; sudo'",
    "bash -x -c sudo",
    "sh -ec sudo",
    "dash -c sudo",
    "bash --norc -c sudo",
    "bash -o pipefail -c sudo",
    'sh -c "$X"',
    "sh -c 'sh -c sudo'",
    "busybox sh -c sudo",
    "sh -c 'sh -c \"sh -c sudo\"'",
    "zsh -c sudo",
    "fish -c sudo",
    "bash5 -c sudo",
    "rbash -c sudo",
    "bash --rcfile x -ic ls",
    "echo sudo | sh",
    "sh <<E\nsudo\nE\n",
    "bash <<< sudo",
    "sh -s",
    "bash /dev/stdin",
    "sh <(echo sudo)",
    "sh",
    "eval sudo",
    "eval 'su''do'",
    "eval su do; sudo",
    'eval "$X"',
    "eval -- sudo",
    "trap sudo EXIT",
    "trap 'sudo ls' 0",
    ". /dev/stdin",
    "source <(echo sudo)",
    "alias ls=sudo",
    "hash -p /usr/bin/sudo ls",
    "enable -f ./x.so x",
    "fc -s",
    "let 'a[$(sudo)]'",
    # anywhere in a longer command
    "ls; sudo",
    "ls && sudo",
    "ls || sudo",
    "ls | sudo",
    "ls & sudo",
    "ls\nsudo",
    "ls |& sudo",
    "ls &> f sudo",
    "(sudo)",
    "{ sudo; }",
    "((sudo))",
    "((sudo x) )",
    "$(sudo)",
    "echo $(sudo)",
    "echo `sudo`",
    'echo "$(sudo)"',
    'echo "`sudo`"',
    "echo `echo \\`sudo\\``",
    "cat <(sudo)",
    "ls > >(sudo)",
    "echo ${x:-$(sudo)}",
    "echo ${x:-`sudo`}",
    "echo $((`sudo`))",
    "echo $(( $(sudo) ))",
    "echo $((a[$(sudo)]))",
    "echo $[$(sudo)]",
    "X=$(sudo)",
    "X=`sudo` ls",
    "export X=$(sudo)",
    "cat <<E\n$(sudo)\nE\n",
    "cat <<-E\n`sudo`\n\tE\n",
    "cat <<E\nx\nE\nsudo",
    "cat <<'E'\nx\nE\nsudo",
    "cat <<E | sudo\nx\nE\n",
    "cat <<E; sudo\nx\nE\n",
    "cat <<E\nfoo \\\nE\ncat <<'F'\nE\nsudo\nF\n",
    "cat <<\\E\nx\nE\nsudo",
    "cat <<< $(sudo)",
    "if sudo; then ls; fi",
    "if ls; then sudo; fi",
    "if ls; then ls; else sudo; fi",
    "if ls; then ls; elif sudo; then ls; fi",
    "while sudo; do ls; done",
    "until ls; do sudo; done",
    "for x in $(sudo); do ls; done",
    "for x in y; do sudo; done",
    "for ((;;)); do sudo; done",
    "select x in y; do sudo; done",
    "case x in x) sudo;; esac",
    "case $(sudo) in x) ls;; esac",
    "f() { sudo; }; f",
    "f() (sudo); f",
    "function f { sudo; }; f",
    "[ $(sudo) ]",
    "[[ -n $(sudo) ]]",
    'test -n "$(sudo)"',
    "[ -f x && sudo ]",
    "[ -v 'a[$(sudo)]' ]",
    "printf -v 'a[$(sudo)]' x",
    "read 'a[$(sudo)]'",
    "unset 'a[$(sudo)]'",
    "ls # x\nsudo",
    "ls \\\n#c \\\n\\\n sudo",
    "ls &>f sudo",
    "ls x\n\\sudo",
    "ls x\n`sudo`",
    "ls $A\n\\sudo",
    'ls "$(ls) `cat \\`sudo\\``"',
    "ls #\\\nsudo",
    "ls \\\n; sudo",
    "echo 'a\n' ; sudo",
    "ls\r\nsudo",
    "ls\x0bsudo",
    "ls\x00sudo",
    "ls\xa0sudo",
    "${x@P}",
    "echo ${x@P}",
    "echo ${x[$(sudo)]}",
    "ls;sudo",
    "ls;;sudo",
    # variables that hold code
    "BASH_ENV=x bash -c ls",
    "ENV=./x sh -c ls",
    "LD_PRELOAD=./x.so ls",
    "PAGER=sudo man ls",
    "EDITOR=sudo crontab -e",
    "GIT_SSH_COMMAND=sudo git fetch",
    "env GIT_PAGER=sudo git log",
    "export GIT_EDITOR=sudo; git commit",
    "SUDO_ASKPASS=x ls",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=!sudo git x",
    "PROMPT_COMMAND=sudo bash -i",
    "PS4='$(sudo)' sh -xc ls",
    "for BASH_ENV in x; do ls; done",
    "read BASH_ENV < f",
    ": ${LD_PRELOAD:=x}",
    "declare -n x=LD_PRELOAD",
    "export $X",
    # git
    "git -c alias.x='!sudo' x",
    "git -c alias.x=!sudo x",
    "git --config-env=alias.x=X x",
    "git -c core.pager=sudo log",
    "git -c core.sshCommand=sudo fetch",
    "git -C . -c diff.external=sudo diff",
    "git --exec-path=. x",
    "git bisect run sudo",
    "git submodule foreach sudo",
    "git submodule foreach 'ls; sudo'",
    "git rebase -x sudo main",
    "git rebase --exec=sudo main",
    "git rebase -ixsudo main",
    "git config alias.x '!sudo'",
    "git config --global core.pager sudo",
    "git difftool -x sudo",
    "git clone ext::sudo x",
    "git clone -u sudo a b",
    "git fetch --upload-pack=sudo",
    "git push --receive-pack=sudo",
    "git grep -Osudo x",
    "git fetch --upl=sudo",
    "git push --e=sudo",
    "git push --ex sudo",
    "git config core.pager sudo get",
    "git config core.pager sudo --get",
    "git config --global alias.x '!sudo' list",
    "jobs -x sudo",
    "compgen -C sudo",
    "mapfile -C sudo -c 1 a",
    "git archive --remote=. --exe=sudo HEAD",
    "git filter-branch --tree-filter sudo",
    "git clone -c core.fsmonitor=sudo a",
    "git -c $X log",
    "git $X",
]


@pytest.mark.parametrize("command", PAST_DENY_SUDO)
def test_a_way_around_deny_sudo_is_refused(command: str):
    verdict = judge_command(DENY_SUDO, command)
    assert verdict.reason in ("denied", "command_unclear")


@pytest.mark.parametrize("command", [c for c in PAST_DENY_SUDO if c not in ("sudo", "sudo ls")])
def test_a_way_around_deny_sudo_is_no_way_around_an_allow_list_either(command: str):
    assert judge_command(ALLOW_GIT, command).reason in ("not_allowed", "command_unclear")


def test_the_table_holds_at_least_eighty_attempts():
    assert len(set(PAST_DENY_SUDO)) >= 250


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls -la",
        "echo 'sudo make me a sandwich'",
        'echo "sudo"',
        "grep sudo README.md",
        "ls # sudo",
        "cat sudo.txt",
        "X=sudo",
        "ls > sudo",
        'echo "$A $B"',
        'echo "a `ls` b"',
        'echo "x $(ls) ${A:-b} $((1)) y"',
        "cat <<E\na $A b\nE\n",
        "sudoku",
        "pseudo",
        "git log --grep=sudo",
        "npm test && npm run build",
        "echo $((1 + 2))",
        'echo "$HOME"',
        'for f in a b; do echo "$f"; done',
        "if [ -f x ]; then echo y; fi",
        "cat <<'E'\nsudo $(sudo)\nE\n",
        "cat <<E\nplain\nE\n",
        "python -c 'print(1)'",
        "sh ./build.sh",
        "timeout 60 make -j2 2>&1 | tail -5",
        "find . -name '*.py' -exec wc -l {} +",
        "git ls-files | xargs -n 1 wc -l",
        "git -c user.name=x commit -m 'a b'",
        "PATH=$PWD/bin:$PATH make",
        "NODE_ENV=test npm test",
        "git config --get core.pager",
        "git config --global --get alias.x",
        "git commit --template=x",
        "git log --stat --exclude=x",
        "git push --set-upstream origin x",
        "git clone https://example.com/x",
        "printf '%s\\n' x",
        "export CI=1; npm test",
        "env CI=1 npm test",
        "a=$(git rev-parse HEAD)",
        "case $x in a|b) ls;; *) echo;; esac",
        "f() { ls; }; f",
        "(cd src && ls)",
        "ls\necho",
        "command -v git",
        "bash -c 'ls; echo'",
        "trap 'rm -f x' EXIT",
        "git commit --fixup=HEAD",
        "cat <<< x",
        "test -f x || echo",
        "echo é ☃",
    ],
)
def test_what_deny_sudo_lets_through(command: str):
    assert judge_command(DENY_SUDO, command).reason is None


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git push origin main",
        "git -C . push",
        "git --no-pager push -f",
        "git --git-dir=x push",
        "/usr/bin/git push",
        "git >f push",
        "git 2>&1 >f push origin",
        "git $SUBCOMMAND",
        "git 'push'",
        "GIT push",
        "timeout 5 git push",
        "rm -rf /",
        "rm -rf $X",
        "rm $X /",
        "git pu* origin",
    ],
)
def test_a_denied_subcommand_is_found_behind_the_options_of_its_program(command: str):
    assert judge_command(DENY_PUSH, command).reason in ("denied", "command_unclear")


@pytest.mark.parametrize(
    "command", ["git status", "git -C . status", "rm -rf ./build", "rm -rf", "git pushy", "git stash push"]
)
def test_other_subcommands_pass(command: str):
    assert judge_command(DENY_PUSH, command).reason is None


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("git status", None),
        ("/usr/bin/git status", None),
        ("git status ", None),
        ("git status # and a comment", None),
        ("git status -s", "not_allowed"),
        ("git", "not_allowed"),
        ("git push", "not_allowed"),
        ("git $X", "command_unclear"),
        ("git stat*", "command_unclear"),
        ("npm run", None),
        ("npm run build -- --x", None),
        ("npm run $X", None),
        ("npm $X", "not_allowed"),
        ("npm", "not_allowed"),
        ("make", None),
        ("make all -j2", None),
        ("make; git status", None),
        ("make; git push", "not_allowed"),
        ("make $(git status)", None),
        ("make $(git push)", "not_allowed"),
        ("timeout 5 make", None),
        ("nohup nice make", None),
        ("sh -c 'make && git status'", None),
        ("sh -c 'make && git push'", "not_allowed"),
        ("sudo make", "not_allowed"),
        ("chroot / make", "not_allowed"),
        ("sh build.sh", "not_allowed"),
        ("env", "not_allowed"),
        ("find . -exec make ;", "not_allowed"),
        ("[ -f x ] && make", "not_allowed"),
        ("f() { make; }; f", "not_allowed"),
        ("PATH=. make", "command_unclear"),
        ("export PATH=.; make", "command_unclear"),
        ("for PATH in .; do make; done", "command_unclear"),
        ("CI=1 make", None),
        ("MAKE", "not_allowed"),
        ("> f", None),
        ("", None),
        ("# nothing", None),
    ],
)
def test_an_allow_list_lets_through_what_it_says(command: str, reason: str | None):
    assert judge_command(ALLOW_STATUS, command).reason == reason


@pytest.mark.parametrize(
    ("allow", "command", "reason"),
    [
        (["timeout"], "timeout 5 rm x", "not_allowed"),
        (["timeout *"], "timeout 5 rm x", "not_allowed"),
        (["timeout 5 rm *"], "timeout 5 rm x", None),
        (["timeout 5 rm x"], "timeout 5 rm x", None),
        (["sudo", "apt-get"], "sudo apt-get install x", None),
        (["sudo"], "sudo apt-get install x", "not_allowed"),
        (["apt-get"], "sudo apt-get install x", "not_allowed"),
        (["sudo apt-get *"], "sudo apt-get install x", None),
        (["bash"], "bash", None),
        (["bash"], "bash build.sh", None),
        (["bash"], "bash -c 'rm x'", "not_allowed"),
        (["bash -c *"], "bash -c 'rm x'", "not_allowed"),
        (["bash -c 'rm x'"], "bash -c 'rm x'", None),
        (["watch"], "watch ls", None),
        (["git"], "git bisect run rm", "not_allowed"),
        (["git bisect run make test"], "git bisect run make test", None),
        (["find", "wc"], "find . -exec wc {} +", None),
        (["find"], "find . -exec rm {} +", "not_allowed"),
        (["xargs", "wc"], "xargs wc", None),
        (["sudo", "ls"], "sudo -h host rm x", "not_allowed"),
        (["sudo", "ls"], "sudo -u x ls", None),
        (["wc"], "xargs wc", None),
        (["wc -l"], "xargs wc -l", "not_allowed"),
        (["wc -l *"], "xargs wc -l", None),
        (["*"], "anything goes", None),
        (["*"], "$X", "command_unclear"),
        (["git * main"], "git push main", "not_allowed"),
        (["git * main"], "git '*' main", None),
        ([], "ls", "not_allowed"),
    ],
)
def test_rules_about_programs_that_start_programs(allow: list[str], command: str, reason: str | None):
    assert judge_command(policy(mode="allow_list", allow=allow, shell=True), command).reason == reason


@pytest.mark.parametrize("character", list(";&|<>$`(){}[]!*?~\\'\"\n"))
def test_each_character_of_shell_syntax_needs_shell_true_once_a_list_is_in_force(character: str):
    command = f"git status {character}"
    for rules in ({"deny": ["sudo"]}, {"mode": "allow_list", "allow": ["git"]}):
        assert judge_command(policy(**rules), command).reason == "shell_syntax"
    assert judge_command(OPEN, command).reason is None


@pytest.mark.parametrize("character", list("#%+,-./:=@^_"))
def test_other_characters_are_no_shell_syntax(character: str):
    assert judge_command(policy(mode="allow_list", allow=["git"]), f"git status x{character}y").reason is None


def test_deny_is_checked_before_anything_else():
    rules = policy(mode="allow_list", allow=["sudo", "git"], deny=["sudo"])
    assert judge_command(rules, "sudo ls").reason == "denied"
    assert judge_command(rules, "git status; sudo ls").reason == "denied"
    assert judge_command(rules, "git status; git log").reason == "shell_syntax"


def test_the_verdict_names_the_rule_and_where_it_came_from():
    verdict = judge_command(DENY_PUSH, "ls && git push origin")
    (rule,) = verdict.rules
    assert (rule.text, rule.origin) == ("git push *", Origin.PROJECT)
    assert "git push *" in verdict.text
    assert judge_command(ALLOW_STATUS, "make; git status").rules == ALLOW_STATUS.allow[2:3] + ALLOW_STATUS.allow[:1]


@pytest.mark.parametrize(
    "command",
    [
        "(" * 500 + "ls" + ")" * 500,
        "ls " * 40_000,
        "sh -c " * 50 + "ls",
        "a\ud800b",
        "\\",
        "'",
        '"',
        "$(",
        "`",
        "<<",
        "|",
        "&&",
    ],
)
def test_what_cannot_be_read_is_refused_and_never_an_exception(command: str):
    assert judge_command(DENY_SUDO, command).reason == "command_unclear"
