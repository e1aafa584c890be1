"""The workspace tools: list_git_workspaces, create, attach, detach, remove, list_workspaces, list_projects."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from exeora_ws.names import show_bytes
from exeora_ws.tools.services import Services
from exeora_ws.tools.spec import READS, Arguments, Call, Hints, Needs, NoArguments, Result, Routing, Tool
from exeora_ws.workspaces.connect import Candidate, Listed
from exeora_ws.workspaces.create import Wanted
from exeora_ws.workspaces.place import Workspace
from exeora_ws.workspaces.remove import Removal
from exeora_ws.workspaces.setup import Prepared

_SKIPPED_SHOWN = 50


class WorkspaceFacts(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A workspace as results show it."""

    id: str
    slug: str
    name: str
    branch: str | None
    path: str
    managed: bool


class ListedWorkspace(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A workspace of the offline inventory."""

    id: str
    slug: str
    name: str
    branch: str | None
    managed: bool
    available: bool
    path: str


class ProjectFacts(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A project as results show it."""

    id: str
    slug: str
    name: str


class GitWorkspace(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A worktree of the repository, connected or not. `locked` and `prunable` carry the reason."""

    path: str
    branch: str | None
    head: str | None
    detached: bool
    main: bool
    locked: str | UnsetType = UNSET
    prunable: str | UnsetType = UNSET
    connected: str | None


class BaseFacts(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """What a workspace was made from."""

    ref: str
    commit: str


class SkippedFile(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A file that was not copied or linked, and why."""

    path: str
    reason: str


class SetupFacts(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """What was done to make a new workspace ready.

    `status`: `none`, `done`, `failed`, `skipped_untrusted` (a person has to run `exeora trust`), `invalid`.
    """

    status: str
    copied_files: int | UnsetType = UNSET
    linked: list[str] | UnsetType = UNSET
    skipped: list[SkippedFile] | UnsetType = UNSET
    skipped_total: int | UnsetType = UNSET
    ports: dict[str, int] | UnsetType = UNSET
    commands: list[str] | UnsetType = UNSET
    failed_command: str | UnsetType = UNSET
    exit_code: int | UnsetType | None = UNSET
    timed_out: bool | UnsetType = UNSET
    output: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class BranchKept(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Why a branch that was to be deleted is still there."""

    reason: str
    message: str


class CreateArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of create_workspace."""

    branch: Annotated[str, Meta(min_length=1, max_length=1000, description="Branch to make, or to reuse.")]
    from_: Annotated[
        str | UnsetType,
        Meta(description="Branch, tag or commit that a new branch starts from; not with reuseExistingBranch."),
    ] = msgspec.field(default=UNSET, name="from")
    reuse_existing_branch: Annotated[
        bool, Meta(description="Use a local branch that exists instead of making one.")
    ] = False
    name: Annotated[str, Meta(min_length=1, max_length=200, description="Display name; the branch by default.")] | (
        UnsetType
    ) = UNSET
    slug: Annotated[str, Meta(description="Stable selector; derived from the branch by default.")] | UnsetType = UNSET


class AttachArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of attach_workspace: exactly one of path and branch."""

    path: Annotated[str, Meta(min_length=1, description="Absolute path of the worktree. Either this or branch.")] | (
        UnsetType
    ) = UNSET
    branch: Annotated[
        str, Meta(min_length=1, description="Branch that the worktree has checked out. Either this or path.")
    ] | (UnsetType) = UNSET
    name: Annotated[str, Meta(min_length=1, max_length=200, description="Display name; the branch by default.")] | (
        UnsetType
    ) = UNSET
    slug: Annotated[str, Meta(description="Stable selector; derived from the branch by default.")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Refuse both and neither."""
        if (self.path is UNSET) == (self.branch is UNSET):
            raise ValueError("path, branch: pass exactly one of them")


class RemoveArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of remove_workspace."""

    force: Annotated[bool, Meta(description="Remove even with uncommitted changes; never a locked one.")] = False
    delete_branch: Annotated[bool, Meta(description="Also delete the branch, if `git branch -d` would.")] = False


class GitWorkspaces(Result, frozen=True, kw_only=True):
    """Result of list_git_workspaces."""

    workspaces: list[GitWorkspace]


class Created(Result, frozen=True, kw_only=True):
    """Result of create_workspace."""

    workspace: WorkspaceFacts
    base: BaseFacts
    created: bool
    setup: SetupFacts


class Attached(Result, frozen=True, kw_only=True):
    """Result of attach_workspace."""

    workspace: WorkspaceFacts


class Detached(Result, frozen=True, kw_only=True):
    """Result of detach_workspace."""

    workspace: WorkspaceFacts
    detached: bool
    stopped_processes: list[str] | UnsetType = UNSET


class Removed(Result, frozen=True, kw_only=True):
    """Result of remove_workspace."""

    workspace: WorkspaceFacts
    removed: bool
    branch_deleted: bool
    branch_kept: BranchKept | UnsetType = UNSET
    ignored_files: list[str] | UnsetType = UNSET
    ignored_files_total: int | UnsetType = UNSET
    stopped_processes: list[str] | UnsetType = UNSET
    restorable_until: str | UnsetType = UNSET
    teardown: SetupFacts | UnsetType = UNSET
    note: str | UnsetType = UNSET


class Workspaces(Result, frozen=True, kw_only=True):
    """Result of list_workspaces."""

    workspaces: list[ListedWorkspace]


class Projects(Result, frozen=True, kw_only=True):
    """Result of list_projects."""

    projects: list[ProjectFacts]


def show_workspace(workspace: Workspace) -> WorkspaceFacts:
    """Give a workspace as results show it."""
    return WorkspaceFacts(
        id=workspace.id,
        slug=workspace.slug,
        name=show_bytes(workspace.name),
        branch=None if workspace.branch is None else show_bytes(workspace.branch),
        path=str(workspace.path),
        managed=workspace.managed,
    )


def _list_git_workspaces(call: Call[NoArguments, Services]) -> GitWorkspaces:
    listed = call.services.inventory.list_git_workspaces(call.require_project())
    return GitWorkspaces(workspaces=[_show_worktree(entry) for entry in listed])


def _show_worktree(entry: Listed) -> GitWorkspace:
    worktree = entry.worktree
    return GitWorkspace(
        path=show_bytes(str(worktree.path)),
        branch=worktree.branch if worktree.branch is None else show_bytes(worktree.branch),
        head=worktree.head,
        detached=worktree.detached,
        main=worktree.main,
        locked=UNSET if worktree.locked is None else worktree.locked,
        prunable=UNSET if worktree.prunable is None else worktree.prunable,
        connected=entry.connected,
    )


def _create_workspace(call: Call[CreateArguments, Services]) -> Created:
    asked = call.arguments
    wanted = Wanted(
        branch=asked.branch,
        base=_given(asked.from_),
        reuse=asked.reuse_existing_branch,
        name=_given(asked.name),
        slug=_given(asked.slug),
    )
    creation, prepared = call.services.inventory.create(call.require_place(), wanted, call.cancellation)
    return Created(
        workspace=show_workspace(creation.workspace),
        base=BaseFacts(ref=show_bytes(creation.base.ref), commit=creation.base.commit),
        created=creation.created,
        setup=show_setup(prepared),
    )


def show_setup(prepared: Prepared) -> SetupFacts:
    """Give what was done to make a workspace ready, as results show it."""
    copied, failure = prepared.copied, prepared.failure
    skipped = [SkippedFile(path=show_bytes(path), reason=reason) for path, reason in copied.skipped]
    return SetupFacts(
        status=prepared.status,
        copied_files=copied.files or UNSET,
        linked=copied.links or UNSET,
        skipped=skipped[:_SKIPPED_SHOWN] or UNSET,
        skipped_total=len(skipped) or UNSET,
        ports=dict(prepared.ports) or UNSET,
        commands=list(prepared.commands) or UNSET,
        failed_command=UNSET if failure is None else failure.command,
        exit_code=UNSET if failure is None else failure.ran.code,
        timed_out=UNSET if failure is None else failure.ran.timed_out,
        output=UNSET if failure is None else failure.ran.output,
        message=UNSET if prepared.message is None else prepared.message,
    )


def _given(value: str | UnsetType) -> str | None:
    return None if isinstance(value, UnsetType) else value


def _attach_workspace(call: Call[AttachArguments, Services]) -> Attached:
    asked = call.arguments
    candidate = Candidate(_given(asked.path), _given(asked.branch), _given(asked.name), _given(asked.slug))
    workspace = call.services.inventory.attach(call.require_project(), candidate, call.cancellation)
    return Attached(workspace=show_workspace(workspace))


def _detach_workspace(call: Call[NoArguments, Services]) -> Detached:
    place = call.require_place()
    stopped = call.services.inventory.detach(place)
    return Detached(
        workspace=show_workspace(place.workspace), detached=True, stopped_processes=list(stopped) if stopped else UNSET
    )


def _remove_workspace(call: Call[RemoveArguments, Services]) -> Removed:
    asked = call.arguments
    removal = call.services.inventory.remove(
        call.require_place(), force=asked.force, delete_branch=asked.delete_branch, cancellation=call.cancellation
    )
    return show_removal(removal)


def show_removal(removal: Removal) -> Removed:
    """Give a removal as results show it."""
    branch = removal.branch
    kept = (
        BranchKept(reason=branch.reason or "kept", message=branch.message or "")
        if branch is not None and not branch.deleted
        else UNSET
    )
    until = removal.restorable_until
    return Removed(
        workspace=show_workspace(removal.workspace),
        removed=True,
        branch_deleted=branch is not None and branch.deleted,
        branch_kept=kept,
        ignored_files=[show_bytes(path) for path in removal.ignored] or UNSET,
        ignored_files_total=removal.ignored_count or UNSET,
        stopped_processes=list(removal.stopped) or UNSET,
        restorable_until=datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds") if until else UNSET,
        teardown=show_setup(removal.teardown) if removal.teardown and removal.teardown.status != "none" else UNSET,
        note=UNSET if removal.workspace.managed else "this worktree was attached, not made by exeora",
    )


def _list_workspaces(call: Call[NoArguments, Services]) -> Workspaces:
    inventory, project = call.services.inventory, call.require_project()
    return Workspaces(
        workspaces=[
            ListedWorkspace(
                id=w.id,
                slug=w.slug,
                name=w.name,
                branch=None if w.branch is None else show_bytes(w.branch),
                managed=w.managed,
                available=inventory.find_fault(project, w) is None,
                path=str(w.path),
            )
            for w in inventory.list_workspaces(project)
        ]
    )


def _list_projects(call: Call[NoArguments, Services]) -> Projects:
    reachable = call.services.inventory.list_projects()
    return Projects(
        projects=[
            ProjectFacts(id=p.id, slug=p.slug, name=p.root.name or p.slug)
            for p in reachable
            if call.granted is None or p.id in call.granted
        ]
    )


_CHANGES = Hints(read_only=False, destructive=False, idempotent=False, open_world=False)

_GIT_REASONS = {
    "not_a_repository": "the project is not a Git repository, or Git cannot open it",
    "git_failed": "Git refused; the message is its own first line",
    "name_too_long": "the file system takes no name of that length",
    "unsupported": "the repository needs something that is not installed here",
    "busy": "another exeora is at work on this repository for too long",
}

_SLUG_REASONS = {
    "invalid_slug": "malformed slug",
    "reserved_slug": "`main` is the project root",
    "slug_taken": "another workspace has that slug",
}

LIST_GIT_WORKSPACES = Tool(
    name="list_git_workspaces",
    title="List Git workspaces",
    description=(
        "List every worktree of this repository, also those that are not connected here, locked, broken or prunable "
        "(with the reason). `connected` is the slug to pass as `workspace`; a worktree without one can be connected "
        "with attach_workspace by its path."
    ),
    arguments=NoArguments,
    result=GitWorkspaces,
    hints=READS,
    routing=Routing.NONE,
    needs=Needs.PROJECT,
    function=_list_git_workspaces,
    reasons=_GIT_REASONS,
)

CREATE_WORKSPACE = Tool(
    name="create_workspace",
    title="Create workspace",
    description=(
        "Make a workspace of its own for a branch: a Git worktree under the managed root, registered and ready. Use it "
        "before working on a branch, rather than raw git commands, and pass the slug it returns as `workspace` in "
        "every later call. The same call repeated answers with the workspace that is there (`created: false`). When "
        "it fails, nothing is left behind and the same call can be made again."
    ),
    arguments=CreateArguments,
    result=Created,
    hints=Hints(read_only=False, destructive=False, idempotent=True, open_world=False),
    routing=Routing.OPTIONAL,
    needs=Needs.REPOSITORY,
    function=_create_workspace,
    reasons={
        **_GIT_REASONS,
        **_SLUG_REASONS,
        "invalid_branch": "not a name Git takes for a branch",
        "conflicting_fields": "`from` together with `reuseExistingBranch`",
        "branch_exists": "the branch is there already and reuse was not asked for",
        "branch_not_found": "reuse was asked for and there is no such local branch",
        "branch_checked_out": "another workspace has the branch; `data.workspace` names it when it is connected",
        "branch_in_use": "another worktree is in the middle of a rebase or bisect of the branch",
        "branch_conflict": "`feat` and `feat/x` cannot both exist",
        "unknown_ref": "`from` names no commit",
        "unborn_head": "the source has no commit yet",
        "workspace_missing": "a registered workspace has the branch, but its folder is not usable",
        "target_not_empty": "the folder for it is taken",
        "target_inside_checkout": "the managed root lies inside a repository or project",
        "missing_subdirectory": "the commit lacks the project's subdirectory",
        "hook_failed": "the repository's post-checkout hook failed",
        "disk_full": "no space left",
        "managed_root_unwritable": "the managed root cannot be written",
    },
)

ATTACH_WORKSPACE = Tool(
    name="attach_workspace",
    title="Attach workspace",
    description=(
        "Connect a worktree of this repository that something else made, named by exactly one of its absolute path and "
        "the branch it has checked out (list_git_workspaces shows both). It stays where it is and is not ours to "
        "delete unasked."
    ),
    arguments=AttachArguments,
    result=Attached,
    hints=_CHANGES,
    routing=Routing.NONE,
    needs=Needs.PROJECT,
    function=_attach_workspace,
    reasons={
        **_GIT_REASONS,
        **_SLUG_REASONS,
        "relative_path": "the path is not absolute",
        "not_found": "no worktree has that branch checked out",
        "not_a_worktree": "nothing of this repository is there",
        "other_repository": "another repository's checkout",
        "is_main": "the main worktree is `main` already",
        "already_connected": "it has a slug already: `data.workspace`",
        "broken_worktree": "its folder is gone or its links are broken",
        "missing_subdirectory": "it lacks the project's subdirectory",
        "path_not_utf8": "its path is not UTF-8",
    },
)

DETACH_WORKSPACE = Tool(
    name="detach_workspace",
    title="Detach workspace",
    description="Disconnect a workspace and end the processes in it. Its folder and branch stay exactly as they are.",
    arguments=NoArguments,
    result=Detached,
    hints=_CHANGES,
    routing=Routing.REQUIRED,
    needs=Needs.RECORD,
    function=_detach_workspace,
    reasons={"is_main": "main cannot be detached"},
)

REMOVE_WORKSPACE = Tool(
    name="remove_workspace",
    title="Remove workspace",
    description=(
        "Disconnect a workspace, end its processes and remove its folder. Refused while it holds uncommitted changes "
        "(unless `force`) and while it is locked (always). The branch stays unless `deleteBranch` is set, and then "
        "goes only if it is merged. Ignored files are listed in the answer. Use this rather than raw git commands."
    ),
    arguments=RemoveArguments,
    result=Removed,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=False),
    routing=Routing.REQUIRED,
    needs=Needs.RECORD,
    function=_remove_workspace,
    reasons={
        **_GIT_REASONS,
        "is_main": "main is never removed",
        "dirty": "uncommitted changes; `data` names files of each kind",
        "locked": "the worktree is locked; `data.lockReason` says why",
        "nested_workspace": "another worktree, workspace or project lies in its folder",
        "connected_elsewhere": "another project has the same worktree connected",
        "foreign_folder": "the registered folder holds something else now",
        "operation_in_progress": "a rebase, merge or bisect is not finished",
        "unreachable_commits": "a detached HEAD whose commits no branch or tag has",
        "delete_failed": "the kernel would not move the folder",
    },
)

LIST_WORKSPACES = Tool(
    name="list_workspaces",
    title="List workspaces",
    description=(
        "List the workspaces connected to a project, `main` first, from the offline inventory. `available` is false "
        "where the folder cannot be used right now."
    ),
    arguments=NoArguments,
    result=Workspaces,
    hints=READS,
    routing=Routing.NONE,
    needs=Needs.PROJECT,
    function=_list_workspaces,
    reasons={},
    account_only=True,
)

LIST_PROJECTS = Tool(
    name="list_projects",
    title="List projects",
    description="List the projects this connection reaches. With more than one, every other call names its `project`.",
    arguments=NoArguments,
    result=Projects,
    hints=READS,
    routing=Routing.NONE,
    needs=Needs.NOTHING,
    function=_list_projects,
    reasons={},
    account_only=True,
)

WORKSPACE_TOOLS = (
    LIST_GIT_WORKSPACES,
    CREATE_WORKSPACE,
    ATTACH_WORKSPACE,
    DETACH_WORKSPACE,
    REMOVE_WORKSPACE,
    LIST_WORKSPACES,
    LIST_PROJECTS,
)
