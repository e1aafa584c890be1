"""What an agent reads before it works: list_skills and get_agent_prompt."""

from msgspec import UNSET, Struct, UnsetType

from exeora_ws.skills.listing import list_skills
from exeora_ws.skills.prompt import agent_prompt
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import READS, Call, Needs, NoArguments, Result, Routing, Tool


class SkillFacts(Struct, rename="camel", frozen=True, kw_only=True):
    """One skill; `path` is what read_file takes, `source` is `user` or `project`."""

    name: str
    description: str
    source: str
    path: str


class SkillProblem(Struct, rename="camel", frozen=True, kw_only=True):
    """A skill that is left out or shown cut, and why."""

    path: str
    message: str


class SkillsResult(Result, frozen=True, kw_only=True):
    """The skills, sorted by name; `problems` only where there are any."""

    skills: list[SkillFacts]
    problems: list[SkillProblem] | UnsetType = UNSET


class PromptResult(Result, frozen=True, kw_only=True):
    """The text."""

    prompt: str


def _list_skills(call: Call[NoArguments, Services]) -> SkillsResult:
    found = list_skills(call.require_place().root, call.services.home)
    problems = [SkillProblem(path=each.path, message=each.message) for each in found.problems]
    return SkillsResult(
        skills=[
            SkillFacts(name=each.name, description=each.description, source=each.source, path=each.path)
            for each in found.skills
        ],
        problems=problems or UNSET,
    )


def _get_agent_prompt(_call: Call[NoArguments, Services]) -> PromptResult:
    return PromptResult(prompt=agent_prompt())


LIST_SKILLS: Tool[NoArguments, SkillsResult, Services] = Tool(
    name="list_skills",
    title="List skills",
    description=(
        "Lists the agent skills at hand: those of the user in ~/.agents/skills/ and those of the workspace in "
        ".agents/skills/, which win where names are the same. Call it once before you start; when a description fits "
        "the task, pass its path to read_file and follow what it says. Skills that cannot be read are under problems."
    ),
    arguments=NoArguments,
    result=SkillsResult,
    hints=READS,
    routing=Routing.OPTIONAL,
    needs=Needs.CHECKOUT,
    function=_list_skills,
    reasons={},
)

GET_AGENT_PROMPT: Tool[NoArguments, PromptResult, Services] = Tool(
    name="get_agent_prompt",
    title="Get the agent prompt",
    description=(
        "Gives this server's own guide for coding agents: how workspaces are chosen, how files are changed and "
        "commands run here, and what a refusal means. Read it before your first other call."
    ),
    arguments=NoArguments,
    result=PromptResult,
    hints=READS,
    routing=Routing.NONE,
    needs=Needs.NOTHING,
    function=_get_agent_prompt,
    reasons={},
)

GUIDANCE_TOOLS = (LIST_SKILLS, GET_AGENT_PROMPT)
