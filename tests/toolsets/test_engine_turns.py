"""Toolset engine in a planned turn, sentence by sentence: lanes, the write phase and the final write phase."""

import json

import anyio
import pytest
from exeora_ws.app import open_calls, open_planned_calls
from exeora_ws.errors import InvalidArguments
from mcp import types

pytestmark = pytest.mark.anyio

OWED = ["index.html", "app.js"]


@pytest.fixture
def plan(app, offer, tmp_path):
    """Offer the engine for one turn of a plan."""

    def make(*, rounds=24, stage="draft", stages=None, **more):
        file = tmp_path / "plan.json"
        stages = stages or [
            {"name": "draft", "owes": OWED},
            {"name": "style", "owes": ["style.css", "app.js"]},
            {"name": "review", "owes": ["report.md"], "checks": True},
            {"name": "talk"},
        ]
        file.write_text(json.dumps({"rounds": rounds, "stages": stages, **more}))
        engine = offer("engine")
        engine.calls = open_planned_calls(app, ["engine"], file, stage)
        return engine

    return make


def names(engine):
    return {tool.name for tool in engine.calls.offered(scope_of(engine))}


def scope_of(engine):
    from exeora_ws.tools.call import Scope

    return Scope(bound=engine.project.id)


def use(engine, rounds, start=0):
    """Use up rounds with calls that neither repeat nor only read."""
    for number in range(start, start + rounds):
        if number % 3 == 1:
            engine("list_files", depth=number + 1)
        else:
            engine("run_shell", command=f"true {number}")


def notice(answer):
    return answer["structuredContent"].get("notice", "")


# the plan


def test_a_plan_in_toml(app, tmp_path):
    """A plan says which stage owes which files, with word ranges, and the budget of rounds."""
    file = tmp_path / "plan.toml"
    file.write_text(
        'rounds = 9\nstage = "b"\n[[stages]]\nname = "a"\n[[stages]]\nname = "b"\n'
        'owes = ["x.md", { path = "./show/ep.md", words = [400, 520] }]\n'
    )
    calls = open_planned_calls(app, ["engine"], file, None)
    assert [(f.path, f.words) for f in calls.turn.stage.files] == [("x.md", None), ("show/ep.md", (400, 520))]
    assert calls.turn.plan.rounds == 9


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"rounds": 9, "stages": []}, "stages"),
        ({"rounds": 0, "stages": [{"name": "a"}]}, "rounds"),
        ({"rounds": 9, "stages": [{"name": "a"}, {"name": "a"}]}, "name"),
        ({"rounds": 9, "stages": [{"name": "a"}, {"name": "b"}]}, "whose turn"),
        ({"rounds": 9, "stage": "c", "stages": [{"name": "a"}]}, "'c'"),
        ({"rounds": 9, "stages": [{"name": "a", "owes": ["../x"]}]}, "../x"),
        ({"rounds": 9, "stages": [{"name": "a", "owes": [{"path": "x", "words": [9, 1]}]}]}, "least"),
        ({"rounds": 9, "stages": [{"name": "a"}], "round": 3}, "round"),
        ({"stages": [{"name": "a"}]}, "rounds"),
    ],
)
def test_a_plan_that_cannot_be_understood_is_refused(app, tmp_path, document, why):
    """A malformed plan is refused at the start, with what is wrong."""
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    with pytest.raises(InvalidArguments) as refused:
        open_planned_calls(app, ["engine"], file, None)
    assert refused.value.reason == "plan_invalid"
    assert why in refused.value.message


def test_a_plan_is_for_the_engine(app, tmp_path):
    """A plan without the toolset is refused, and one that is not there is."""
    (tmp_path / "plan.json").write_text('{"rounds": 9, "stages": [{"name": "a"}]}')
    for toolsets, file in ((["sandbox"], "plan.json"), (["engine"], "none.json")):
        with pytest.raises(InvalidArguments) as refused:
            open_planned_calls(app, toolsets, tmp_path / file, None)
        assert refused.value.reason == "plan_invalid"


# lanes


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "revert_file"])
def test_a_stage_may_not_change_what_another_owes(plan, top, tool, caplog):
    """A stage may not change a file that another stage owes; the refusal names its owner and what this one owes."""
    (top / "style.css").write_text("a {}\n")
    arguments = {"write_file": {"content": "b"}, "edit_file": {"search": "a", "replace": "b"}, "revert_file": {}}
    error = plan().refusal(tool, path="style.css", **arguments[tool])
    assert (error["code"], error["reason"]) == ("FORBIDDEN", "another_stage")
    assert "'style'" in error["message"]
    assert "index.html, app.js" in error["message"]
    assert (top / "style.css").read_text() == "a {}\n"
    assert [(r.tag, r.stage, r.owner) for r in caplog.records if hasattr(r, "tag")] == [
        ("STAGE-LANE", "draft", "style")
    ]


def test_what_both_owe_both_may_change(plan, top):
    """… unless it owes the file too."""
    plan().text("write_file", path="app.js", content="x\n")
    assert (top / "app.js").exists()


def test_what_nobody_owes_anybody_may_change(plan, top):
    """Files that no stage owes are not affected."""
    plan().text("write_file", path="notes.txt", content="x\n")
    assert (top / "notes.txt").exists()


def test_a_link_is_no_way_out_of_the_lane(plan, top):
    """The lane holds for where a path really leads."""
    (top / "style.css").write_text("a {}\n")
    (top / "mine.css").symlink_to("style.css")
    assert plan().refusal("write_file", path="mine.css", content="b")["reason"] == "another_stage"


def test_the_fourth_attempt_ends_the_turn(plan, top):
    """The fourth attempt ends the turn: nothing more is done in it."""
    engine = plan()
    for _ in range(3):
        assert "over" not in engine.refusal("write_file", path="style.css", content="x")["message"]
        engine.text("run_shell", command="true")
    assert "over" in engine.refusal("write_file", path="style.css", content="x")["message"]
    for tool, arguments in (
        ("read_file", {"path": "README.md"}),
        ("write_file", {"path": "index.html", "content": ""}),
    ):
        assert engine.refusal(tool, **arguments)["reason"] == "turn_over"
    assert not (top / "style.css").exists()


def test_a_checking_stage_writes_only_its_report(plan, top):
    """A checking stage writes its report and nothing else."""
    engine = plan(stage="review")
    assert engine.refusal("write_file", path="notes.txt", content="x")["reason"] == "report_only"
    assert engine.refusal("write_file", path="index.html", content="x")["reason"] == "another_stage"
    engine.text("write_file", path="report.md", content="x\n")


def test_without_a_plan_there_is_no_lane(offer, top):
    """Without a plan nothing of this applies."""
    engine = offer("engine")
    for number in range(40):
        engine.text("read_file", path="README.md", start_line=1 + number % 2)
    engine.text("write_file", path="style.css", content="x\n")


# the write phase


@pytest.mark.parametrize(("rounds", "first"), [(24, 17), (20, 13), (12, 5), (10, 5), (9, 5), (6, 5)])
def test_when_the_write_phase_begins(plan, rounds, first):
    """From eight rounds before the end, round 5 at the earliest, research tools are withdrawn."""
    engine = plan(rounds=rounds)
    use(engine, first - 2)
    assert engine.calls.turn.phase == "open"
    told = engine("run_shell", command="true last")
    assert engine.calls.turn.phase == "writing"
    assert f"{rounds - first + 1} calls are left" in notice(told)
    assert "still owed: index.html, app.js" in notice(told)


@pytest.mark.parametrize("rounds", [1, 3, 4])
def test_a_short_turn_has_no_write_phase(plan, rounds):
    """A turn that ends before round 5 has none."""
    engine = plan(rounds=rounds)
    use(engine, rounds - 1)
    assert engine.calls.turn.phase == "open"


def test_research_tools_are_withdrawn(plan, app):
    """They are not listed, clients are told that the list changed, and a call is answered with what is owed."""
    engine, told = plan(rounds=9), []
    app.news.subscribe(lambda: told.append(1))
    before = names(engine)
    use(engine, 4)
    assert told == [1]
    assert before - names(engine) == {"read_file", "search_files", "list_files", "read_logs"}
    error = engine.refusal("search_files", query="x")
    assert error["reason"] == "research_withdrawn"
    assert "still owed: index.html, app.js" in error["message"]
    assert engine.text("run_shell", command="echo still")


def test_only_owed_files_while_none_is_there(plan, top):
    """A write that lands no owed file while none is on disk is answered with the list still to write."""
    engine = plan(rounds=9)
    use(engine, 4)
    for tool, arguments in (("write_file", {"content": "x"}), ("edit_file", {"search": "", "replace": "x"})):
        error = engine.refusal(tool, path="notes.txt", **arguments)
        assert error["reason"] == "not_owed"
        assert "still owed: index.html, app.js" in error["message"]
    assert not (top / "notes.txt").exists()
    engine.text("write_file", path="index.html", content="<p></p>\n")
    engine.text("write_file", path="notes.txt", content="x")


def test_before_the_write_phase_a_note_passes(plan, top):
    """Before the write phase a note or a helper file passes without comment."""
    answer = plan()("write_file", path="notes.txt", content="x")
    assert answer["structuredContent"] == {"text": "Created notes.txt: 1 byte."}


def test_nothing_owed_no_write_phase(plan, top):
    """A stage that owes nothing, or has written what it owes, keeps its tools."""
    idle = plan(rounds=12, stage="talk")
    use(idle, 10)
    assert idle.calls.turn.phase == "open"
    for name in OWED:
        (top / name).write_text("x\n")
    done = plan(rounds=12)
    use(done, 10)
    assert done.calls.turn.phase == "open"


def test_a_range_of_words_is_owed_until_it_is_met(plan, top):
    """A file owed at a range of words counts as owed while it is shorter or longer."""
    stages = [{"name": "draft", "owes": [{"path": "ep.md", "words": [4, 6]}]}]
    (top / "ep.md").write_text("one two three\n")
    engine = plan(rounds=9, stages=stages)
    use(engine, 4)
    assert engine.calls.turn.phase == "writing"
    assert "ep.md (4 to 6 words)" in engine.refusal("list_files")["message"]
    (top / "ep.md").write_text("one two three four\n")
    met = plan(rounds=9, stages=stages)
    use(met, 4)
    assert met.calls.turn.phase == "open"


def test_the_shrink_guard_stands_aside_for_a_range_of_words(plan, top, caplog):
    """Every draft of a file owed at a range of words is new prose: the shrink guard lets it be, and logs that."""
    caplog.set_level("INFO", "exeora.engine")
    stages = [{"name": "draft", "owes": [{"path": "ep.md", "words": [4, 6]}, "page.md"]}]
    for name in ("ep.md", "page.md"):
        (top / name).write_text("words upon words\n" * 50)
    engine = plan(stages=stages)
    engine.text("write_file", path="ep.md", content="quite another draft altogether\n")
    assert [(r.tag, r.path, r.skipped) for r in caplog.records if hasattr(r, "tag")] == [
        ("SHRINK-GUARD", "ep.md", True)
    ]
    assert engine.refusal("write_file", path="page.md", content="another\n")["reason"] == "shrink_guard"


def test_a_repair_with_everything_there_keeps_its_tools(plan, top):
    """A repair turn whose owed files are all on disk already has no write phase, even if one goes meanwhile."""
    for name in OWED:
        (top / name).write_text("x\n")
    engine = plan(rounds=12, repair="the build fails")
    use(engine, 1)
    (top / "app.js").unlink()
    use(engine, 9, start=1)
    assert engine.calls.turn.phase == "open"
    assert "read_file" in names(engine)


# the final write phase


def test_the_final_phase_at_the_cap(plan, top):
    """At the round cap with a file owed: two more calls, in which only the write tools run, then the turn is over."""
    engine = plan(rounds=3)
    use(engine, 2)
    told = notice(engine("run_shell", command="echo last"))
    assert "2 calls are left, for edit_file and write_file alone" in told
    assert "still owed: index.html, app.js" in told
    error = engine.refusal("run_shell", command="touch ran")
    assert error["reason"] == "final_write_phase"
    assert "still owed" in error["message"]
    assert not (top / "ran").exists()
    last = engine("write_file", path="index.html", content="x\n")
    assert (top / "index.html").exists()
    assert "the turn is over" in notice(last)
    assert engine.refusal("write_file", path="app.js", content="x")["reason"] == "turn_over"
    assert not (top / "app.js").exists()


def test_eight_reads_in_a_row(plan):
    """After eight read-only calls in a row with a file owed, the final phase comes."""
    engine = plan()
    for number in range(7):
        engine.text("search_files", query=f"q{number}")
    assert engine.calls.turn.phase == "open"
    assert "2 calls are left" in notice(engine("list_files"))
    assert engine.calls.turn.phase == "final"


def test_a_write_breaks_the_row(plan):
    """What is not read only breaks the row."""
    engine = plan()
    for number in range(15):
        engine("list_files", depth=1 + number) if number % 5 else engine("run_shell", command=f"true {number}")
    assert engine.calls.turn.phase == "open"


def test_the_same_call_three_times(plan):
    """The same call over and over leads there too."""
    engine = plan()
    for _ in range(3):
        engine("run_shell", command="make")
    assert engine.calls.turn.phase == "final"


def test_the_same_tool_over_and_over(plan):
    """So does the same tool over and over, unless it writes."""
    engine = plan(rounds=40)
    for number in range(12):
        assert engine.calls.turn.phase == "open"
        engine("run_shell", command=f"true {number}")
    assert engine.calls.turn.phase == "final"
    writer = plan(rounds=40)
    for number in range(13):
        writer.text("write_file", path=f"n{number}.txt", content="x")
    assert writer.calls.turn.phase == "open"


def test_a_repair_is_told_why_it_was_opened(plan, top):
    """A repair gets the final phase also with nothing owed, and is told why the turn was opened."""
    for name in OWED:
        (top / name).write_text("x\n")
    engine = plan(rounds=2, repair="the build fails")
    use(engine, 1)
    told = notice(engine("run_shell", command="echo"))
    assert "2 calls are left" in told
    assert "the build fails" in told


@pytest.mark.parametrize("stage", ["review", "talk"])
def test_checkers_and_those_who_owe_nothing_end_as_ever(plan, stage):
    """Checkers and agents that owe nothing have no final phase."""
    engine = plan(rounds=2, stage=stage)
    use(engine, 1)
    assert "the turn is over" in notice(engine("run_shell", command="echo"))
    assert engine.refusal("list_files")["reason"] == "turn_over"


def test_who_has_written_everything_ends_as_ever(plan, top):
    """With nothing owed any more the turn ends at its cap."""
    engine = plan(rounds=2)
    for name in OWED:
        engine("write_file", path=name, content="x\n")
    assert engine.calls.turn.phase == "over"


def test_a_refused_call_is_a_round_too(plan):
    """Every call counts, also one that is refused, and what is due stands beside the refusal."""
    engine = plan(rounds=2)
    engine("read_file", path="none")
    answer = engine("read_file")
    assert answer["isError"] is True
    assert "2 calls are left" in answer["content"][0]["text"]


def test_other_toolsets_beside_it_are_told_as_well(app, plan, tmp_path):
    """A notice is put after the answer of any tool."""
    engine = plan(rounds=1)
    engine.calls = open_planned_calls(app, ["engine", "workspaces"], tmp_path / "plan.json", "draft")
    answer = engine("list_workspaces")
    text, _, told = answer["content"][0]["text"].partition("\n\n[")
    assert json.loads(text) == answer["structuredContent"]
    assert "2 calls are left" in told


# by the official client


async def test_by_the_official_client(connect, tmp_path, top):
    """Over stdio: with --plan the list of tools changes when the write phase begins, and the client is told."""
    file = tmp_path / "plan.toml"
    file.write_text('rounds = 9\n[[stages]]\nname = "draft"\nowes = ["index.html"]\n')
    heard = anyio.Event()

    async def hear(message):
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    words = ("mcp", "--toolset", "engine", "--plan", str(file), "--stage", "draft")
    async with connect(*words, mode="legacy", message_handler=hear) as client:
        assert len((await client.list_tools()).tools) == 8
        for number in range(4):
            answer = await client.call_tool("run_shell", {"command": f"echo {number}"})
        assert "still owed: index.html" in answer.content[0].text
        assert len((await client.list_tools()).tools) == 4
        refused = await client.call_tool("read_file", {"path": "README.md"})
        assert refused.is_error
        with anyio.fail_after(10):
            await heard.wait()


def test_the_command_line_refuses_a_plan_that_cannot_be(sealed, top, tmp_path):
    """`--plan` without the toolset, and `--stage` without a plan, are refused with a sentence."""
    from support.commandline import CommandLine

    exeora = CommandLine(top, sealed)
    (tmp_path / "plan.toml").write_text("rounds = 9\n")
    assert exeora.inline("mcp", "--plan", str(tmp_path / "plan.toml")).code == 2
    assert "stage" in exeora.inline("mcp", "--toolset", "engine", "--stage", "x").err


def test_the_same_tools_without_a_plan_stay(app, offer):
    """Opening one planned face changes no other."""
    assert "read_file" in open_calls(app, ["engine"]).catalog
