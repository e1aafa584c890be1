"""Skills: which there are, which are broken, and that none is read from outside its folder."""

import os
import time
from pathlib import Path

import pytest
from exeora_ws.skills.front_matter import Malformed, parse_front_matter
from exeora_ws.skills.listing import HEAD_BYTES, SKILLS, list_skills
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def write(top: Path, folder: str, text: str | bytes | None = None, *, name: str = "", description: str = "d") -> Path:
    path = top / ".agents" / "skills" / folder / "SKILL.md"
    path.parent.mkdir(parents=True)
    whole = f"---\nname: {name or folder}\ndescription: {description}\n---\n# body\n" if text is None else text
    path.write_bytes(whole if isinstance(whole, bytes) else whole.encode())
    return path


def facts(found) -> list[tuple[str, str, str]]:
    return [(skill.name, skill.source, skill.path) for skill in found.skills]


def test_without_any_folder_there_are_none(root: Path, home: Path):
    assert list_skills(root, home) == list_skills(None, home)
    assert (list_skills(root, home).skills, list_skills(root, home).problems) == ((), ())


def test_both_halves_with_paths_that_read_file_takes(root: Path, home: Path):
    write(home, "review", description="how to review")
    write(root, "deploy", description="'how to deploy: \"now\"'")
    found = list_skills(root, home)
    assert facts(found) == [
        ("deploy", "project", ".agents/skills/deploy/SKILL.md"),
        ("review", "user", "~/.agents/skills/review/SKILL.md"),
    ]
    assert [skill.description for skill in found.skills] == ['how to deploy: "now"', "how to review"]
    assert found.problems == ()
    assert (root / found.skills[0].path).read_text().endswith("# body\n")
    assert facts(list_skills(None, home)) == [("review", "user", "~/.agents/skills/review/SKILL.md")]


def test_the_project_wins_where_names_are_the_same(root: Path, home: Path):
    write(home, "a", name="same", description="user's")
    write(root, "b", name="same", description="project's")
    found = list_skills(root, home)
    assert [(skill.source, skill.description) for skill in found.skills] == [("project", "project's")]
    assert found.problems == ()


def test_two_of_one_name_in_one_half_are_told(root: Path, home: Path):
    write(root, "a", name="same", description="first")
    write(root, "b", name="same", description="second")
    found = list_skills(root, home)
    assert [skill.description for skill in found.skills] == ["first"]
    (problem,) = found.problems
    assert problem.path == ".agents/skills/b/SKILL.md"
    assert ".agents/skills/a/SKILL.md" in problem.message


BROKEN = {
    "no front matter": "# hello\n",
    "empty": "",
    "not closed": "---\nname: x\ndescription: y\n",
    "not yaml": "---\nname: [x\n---\n",
    "a list": "---\n- x\n---\n",
    "text": "---\nhello\n---\n",
    "nothing": "---\n---\n",
    "no name": "---\ndescription: y\n---\n",
    "no description": "---\nname: x\n---\n",
    "empty name": "---\nname:\ndescription: y\n---\n",
    "name is a list": "---\nname: [x]\ndescription: y\n---\n",
    "long name": f"---\nname: {'x' * 65}\ndescription: y\n---\n",
    "tab": "---\nname: x\n\tdescription: y\n---\n",
    "latin-1": b"---\nname: caf\xe9\ndescription: y\n---\n",
    "two documents": "---\nname: x\n...\n--- y\ndescription: z\n---\n",
    "binary": b"---\nname: \x00x\ndescription: y\n---\n",
    "alias": "---\na: &a [x]\nname: x\ndescription: y\nb: *a\n---\n",
    "bomb": "---\n"
    "a0: &a0 [x, x]\n"
    + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    + "name: x\ndescription: y\n---\n",
    "deep": "---\nname: " + "[" * 5_000 + "]" * 5_000 + "\n---\n",
    "too long": "---\n" + "#" * HEAD_BYTES + "\nname: x\ndescription: y\n---\n",
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in BROKEN.items()])
def test_a_broken_one_is_reported_and_the_others_are_listed(root: Path, home: Path, text):
    write(root, "broken", text)
    write(root, "good")
    started = time.monotonic()
    found = list_skills(root, home)
    assert time.monotonic() - started < 20  # a bomb that goes off takes for ever
    assert [skill.name for skill in found.skills] == ["good"]
    (problem,) = found.problems
    assert problem.path == ".agents/skills/broken/SKILL.md"
    assert problem.message.startswith("left out: ")
    assert str(root) not in problem.message


def test_yaml_is_read_as_yaml(root: Path, home: Path):
    write(root, "a", "\ufeff---\r\nname: 2024\r\ndescription: >-\r\n  folded\r\n  text\r\nextra: {x: 1}\r\n---\r\nbody")
    write(root, "b", "--- \nname: 'it''s'\ndescription: |\n  # no comment\n  yes\n---")
    write(root, "c", "---\nname: !!python/object/apply:os.system [x]\ndescription: y\n---\n")
    found = list_skills(root, home)
    assert [(skill.name, skill.description) for skill in found.skills] == [
        ("2024", "folded text"),
        ("it's", "# no comment yes"),
    ]
    assert [problem.path for problem in found.problems] == [".agents/skills/c/SKILL.md"]


def test_a_long_description_is_cut_and_that_is_said(root: Path, home: Path):
    write(root, "a", description="x" * 2_000)
    found = list_skills(root, home)
    assert len(found.skills[0].description) == 1_024
    assert "cut" in found.problems[0].message


def test_what_is_no_skill_is_passed_over_in_silence(root: Path, home: Path):
    skills = root / ".agents" / "skills"
    (skills / "empty").mkdir(parents=True)
    (skills / "README.md").write_text("x")
    (skills / "lower").mkdir()
    (skills / "lower" / "skill.md").write_text("x")
    found = list_skills(root, home)
    assert (found.skills, found.problems) == ((), ())


def link_folder(skills: Path, outside: Path) -> None:
    (skills / "bad").symlink_to(outside)


def link_file(skills: Path, outside: Path) -> None:
    (skills / "bad").mkdir()
    (skills / "bad" / "SKILL.md").symlink_to(outside / "SKILL.md")


def link_up(skills: Path, outside: Path) -> None:
    (skills / "bad").symlink_to(os.path.relpath(outside, skills))


def loop(skills: Path, outside: Path) -> None:
    (skills / "bad").symlink_to("bad")


def dangle(skills: Path, outside: Path) -> None:
    (skills / "bad").symlink_to("nowhere")


def fifo(skills: Path, outside: Path) -> None:
    (skills / "bad").mkdir()
    os.mkfifo(skills / "bad" / "SKILL.md")


def folder(skills: Path, outside: Path) -> None:
    (skills / "bad" / "SKILL.md").mkdir(parents=True)


@pytest.mark.parametrize("make", [link_folder, link_file, link_up, loop, dangle, fifo, folder])
@pytest.mark.parametrize("half", ["project", "user"])
def test_links_that_leave_and_other_traps_are_reported_and_not_followed(
    root: Path, home: Path, tmp_path: Path, make, half: str
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "SKILL.md").write_text("---\nname: secret\ndescription: y\n---\n")
    top = root if half == "project" else home
    write(top, "good")
    make(top / ".agents" / "skills", outside)
    found = list_skills(root, home)
    assert [skill.name for skill in found.skills] == ["good"]
    assert [problem.path.split("skills/")[1] for problem in found.problems] == ["bad/SKILL.md"]


def test_a_link_inside_works(root: Path, home: Path):
    write(root, "real", name="x")
    (root / ".agents" / "skills" / "also").symlink_to("real")
    found = list_skills(root, home)
    assert facts(found) == [("x", "project", ".agents/skills/also/SKILL.md")]


def test_a_project_whose_skills_folder_leaves_is_reported(root: Path, home: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    write(outside, "secret")
    (root / ".agents").symlink_to(outside / ".agents")
    found = list_skills(root, home)
    assert found.skills == ()
    assert [problem.path for problem in found.problems] == [".agents/skills"]


def test_the_users_own_folder_may_be_a_link(home: Path, tmp_path: Path):
    dotfiles = tmp_path / "dotfiles"
    write(dotfiles, "x")
    (home / ".agents").symlink_to(dotfiles / ".agents")
    assert facts(list_skills(None, home)) == [("x", "user", "~/.agents/skills/x/SKILL.md")]


def test_more_than_are_looked_at_is_said(root: Path, home: Path):
    for number in range(SKILLS + 3):
        write(root, f"s{number:04}")
    found = list_skills(root, home)
    assert len(found.skills) == SKILLS
    assert found.problems[0].message.startswith("3 more")


def test_a_folder_name_that_is_no_text_is_reported(root: Path, home: Path):
    path = write(root, "good")
    os.mkdir(os.fsencode(path.parents[1]) + b"/caf\xe9")
    with open(os.fsencode(path.parents[1]) + b"/caf\xe9/SKILL.md", "wb") as stream:
        stream.write(path.read_bytes().replace(b"good", b"other"))
    found = list_skills(root, home)
    assert [skill.name for skill in found.skills] == ["good"]
    assert "UTF-8" in found.problems[0].message
    found.problems[0].path.encode()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(st.text(), st.text("-:[]{}&*!|>'\"%@`#\n ab", max_size=60)).map(lambda t: f"---\n{t}\n---\n"))
def test_any_text_is_read_or_malformed(text: str):
    try:
        found = parse_front_matter(text)
    except Malformed:
        return
    assert found.name.strip()
    assert found.description.strip()
