"""What our own code answers over stdio is what the protocol library answers: recorded conversations, said to both."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from exeora_ws.app import open_app
from exeora_ws.settings import find_places

from support.conversations import Conversation, Said, Speaker, load_conversations
from support.forge import Forge
from support.repositories import RepositoryMaker

TOP = Path(__file__).parents[2]

CONVERSATIONS = load_conversations()


@pytest.fixture(scope="module")
def forge():
    made = Forge({**os.environ, "PYTHONPATH": os.pathsep.join(str(TOP / part) for part in ("cli", ".", "tests"))})
    yield made
    made.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return RepositoryMaker(tmp_path_factory.mktemp("template"))("app")


@pytest.fixture
def hold(forge, template, environment, tmp_path):
    """Hold a conversation with a server of its own; gives what was said."""

    def held(conversation: Conversation, *, plain: bool) -> Said:
        folder = tmp_path / ("plain" if plain else "lean")
        shutil.copytree(template, folder / "app")
        places = {"EXEORA_DATA_DIR": str(folder / "data"), "EXEORA_CONFIG_PATH": str(folder / "config.json")}
        own = {**environment, **places}
        open_app(find_places(own)).inventory.register_project(folder / "app", exact=False)
        if "policy" in conversation.head:
            (folder / "app" / "exeora.toml").write_text(conversation.head["policy"])
        kind = conversation.head["command"]
        words = ["mcp", *["--plain"] * plain] if kind == "exeora" else [conversation.head["scope"], *["plain"] * plain]
        (near_in, far_in), (far_out, near_out) = os.pipe(), os.pipe()
        with (tmp_path / "errors").open("ab") as errors:
            pid = forge.start(kind, words, own, folder / "app", [near_in, near_out, errors.fileno()])
        os.close(near_in)
        os.close(near_out)
        try:
            return Speaker(pid, far_in, far_out, folder).say(conversation.steps, lambda: forge.wait(pid))
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.close(far_out)

    return held


def test_enough_is_said():
    assert sum(conversation.exchanges for conversation in CONVERSATIONS) > 400


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.name)
def test_both_say_the_same(hold, conversation):
    lean, plain = hold(conversation, plain=False), hold(conversation, plain=True)
    for number, (one, other) in enumerate(zip(lean.groups, plain.groups, strict=True)):
        assert one == other, f"group {number}"
    assert lean.code == plain.code
