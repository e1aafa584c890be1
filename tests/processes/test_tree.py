import os
import shutil
import signal
import subprocess
import threading
import time

import pytest
from exeora_ws.processes.ending import end_tree
from exeora_ws.processes.orphans import Orphans
from exeora_ws.processes.piped import spawn_piped
from exeora_ws.processes.spawn import DEVNULL, join_tags, spawn
from exeora_ws.processes.table import Identity, find_entry, find_program, find_variable, is_running, load_table
from exeora_ws.processes.tree import Tree, send_signal

from support.processes import PROGRAMS, all_gone, eventually, find_tagged


@pytest.fixture
def start(tmp_path):
    children = []

    def start(script, **more):
        child = spawn(
            ["/bin/sh", "-c", script],
            cwd=str(tmp_path),
            environ=dict(os.environ),
            stdout=DEVNULL,
            stderr=DEVNULL,
            **more,
        )
        children.append(child)
        return child

    yield start
    for child in children:
        end_tree(child.tree, grace=0)
        child.poll()
    assert find_tagged() == []


def test_a_process_is_its_number_and_its_start(start):
    child = start("exec sleep 300")
    identity = child.tree.root
    assert is_running(identity)
    later = Identity(identity.pid, identity.started + 1)
    assert not is_running(later)
    assert not send_signal(later, signal.SIGKILL)
    assert is_running(identity)
    assert send_signal(identity, signal.SIGKILL)
    assert eventually(lambda: not is_running(identity))
    assert find_entry(identity.pid).zombie
    assert child.poll() == -signal.SIGKILL
    assert not send_signal(identity, signal.SIGKILL)


def test_without_pid_descriptors_signals_check_the_start_as_well(start, monkeypatch):
    child = start("exec sleep 300")
    monkeypatch.delattr(os, "pidfd_open")
    identity = child.tree.root
    assert not send_signal(Identity(identity.pid, identity.started + 1), signal.SIGKILL)
    assert is_running(identity)
    assert send_signal(identity, signal.SIGTERM)


def test_names_with_brackets_and_blanks_are_read(tmp_path):
    program = tmp_path / "a ) R 1 (b"
    shutil.copyfile("/bin/sleep", program)
    program.chmod(0o755)
    child = spawn([str(program), "300"], cwd="/", environ={}, stdout=DEVNULL, stderr=DEVNULL)
    entry = find_entry(child.pid)
    assert (entry.parent, entry.session, entry.zombie) == (os.getpid(), child.pid, False)
    assert eventually(lambda: find_program(child.pid) == "a ) R 1 (b")
    end_tree(child.tree, grace=0)
    assert child.poll() == -signal.SIGKILL


def test_members_are_found_by_parent_session_and_tag(start):
    child = start("sleep 300 & setsid sleep 301 & (setsid sh -c 'sleep 302 & exec sleep 303' &) ; exec sleep 304")
    assert eventually(lambda: len(child.tree.find_members()) == 5)
    # A process is a copy of the shell before it is what the shell was told to run.
    assert eventually(lambda: {find_program(e.pid) for e in child.tree.find_members()} == {"sleep"})


def test_two_commands_do_not_take_each_other_s_processes(start):
    one, other = start("setsid sleep 300 & exec sleep 300"), start("setsid sleep 300 & exec sleep 300")
    assert eventually(lambda: len(one.tree.find_members()) == 2)
    end_tree(one.tree)
    assert one.poll() is not None
    assert eventually(lambda: len(other.tree.find_members()) == 2)
    assert other.poll() is None


def test_a_session_that_a_tagged_process_shares_with_others_is_not_taken(start):
    """As when the command ran at a terminal and somebody else ends it: its session is the person's."""
    ours = find_entry(os.getpid())
    child = start("exec sleep 300", own_session=False)
    assert find_entry(child.pid).session == ours.session
    stranger = Tree(child.tree.root, child.tree.tag, leads_session=False)
    assert [e.pid for e in stranger.find_members()] == [child.pid]


def test_a_later_session_with_the_number_of_the_root_is_not_taken(start):
    """The root is gone and its number belongs to another session leader now."""
    child = start("exec sleep 300")
    stale = Tree(Identity(child.pid, child.tree.root.started - 1), "another-tag")
    assert stale.find_members() == []


def test_tags_nest():
    inner = join_tags("outer", "inner")
    assert inner.split(":")[0] == "outer"
    assert inner.split(":")[-1] == "inner"
    assert join_tags("-", "x") == join_tags(None, "x") == join_tags("", "x")


def test_an_outer_command_takes_what_an_inner_one_started(start, tmp_path):
    child = start("EXEORA_TAG=$EXEORA_TAG:more setsid sleep 300 & exec sleep 300")
    assert eventually(lambda: len(child.tree.find_members()) == 2)


def test_ending_gives_time_and_then_none(start):
    child = start("exec sh $P/ignores_term.sh".replace("$P", str(PROGRAMS)))
    assert eventually(lambda: len(child.tree.find_members()) >= 3)
    began = time.monotonic()
    ending = end_tree(child.tree, grace=0.3)
    assert 0.3 <= time.monotonic() - began < 1.5
    assert len(ending.found) >= 2
    assert ending.survivors == []
    assert child.poll() == -signal.SIGKILL


def test_a_chain_of_forks_is_caught(start):
    """A process that forks and exits all the time, each child in a new session: never two looks at the same pid."""
    hopper = "import os,time\nwhile True:\n  if os.fork(): os._exit(0)\n  os.setsid(); time.sleep(0.002)"
    child = start(f"trap '' TERM; exec python3 -c '{hopper}'")
    assert eventually(lambda: child.poll() is not None)
    assert eventually(find_tagged)
    ending = end_tree(child.tree, grace=0.2)
    assert ending.survivors == []
    assert find_tagged() == []


def test_a_fresh_helper_is_never_taken_for_an_orphan(supervisor, execute):
    """Helpers without any environment are born while commands end and look for what they left."""
    stop, codes = threading.Event(), []

    def spawn_helpers():
        while not stop.is_set():
            with spawn_piped(["/bin/echo", "x"], cwd="/", environ={}) as helper:
                helper.stdout.read()
                codes.append(helper.wait(5))

    thread = threading.Thread(target=spawn_helpers)
    thread.start()
    for _ in range(60):
        execute("setsid sleep 300 & echo x")
    stop.set()
    thread.join()
    assert len(codes) > 20
    assert set(codes) == {0}


def test_a_stranger_s_child_that_leads_a_session_is_left_to_it(supervisor, execute):
    """Other code here starts session leaders too, without our tag; they carry their environment."""
    theirs = subprocess.Popen(["/bin/sleep", "300"], start_new_session=True, env={"HOME": "/", "PATH": "/bin"})
    execute("setsid sleep 300 & echo x")
    assert theirs.poll() is None
    theirs.kill()
    theirs.wait()


def test_ended_orphans_are_collected_and_strangers_are_given_time(start):
    clock = [0.0]
    orphans = Orphans(lambda: clock[0])
    theirs = subprocess.Popen(["/bin/sh", "-c", "exit 42"], start_new_session=True)
    child = start("(setsid sh -c 'sh -c \"exit 3\" & sleep 0.01' &) ; sleep 0.2")
    assert eventually(lambda: all_gone([theirs.pid, child.pid]))
    orphans.sweep()
    left = {e.pid for e in load_table().values() if e.parent == os.getpid() and e.zombie}
    assert theirs.pid in left
    assert child.pid in left
    assert theirs.wait() == 42
    clock[0] += 11
    orphans.sweep()
    left = {e.pid for e in load_table().values() if e.parent == os.getpid() and e.zombie}
    assert left == {child.pid}
    assert child.poll() == 0


def test_a_variable_is_read_from_the_start_of_its_name(start):
    child = start("exec sleep 300")
    assert eventually(lambda: find_program(child.pid) == "sleep")
    assert find_variable(child.pid, "HOME") == os.environ["HOME"]
    assert find_variable(child.pid, "OME") == ""
    assert find_variable(2**22 + 5, "HOME") is None
