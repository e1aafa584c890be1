"""Which test holds which of the public failures of other worktree tools; each must be there.

The numbers are those of the list of cases, its part on worktrees.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CASES = {
    "1 branches whose names look alike": ("workspaces/test_create.py::test_branches_that_look_alike_never_share",),
    "2 a branch that is checked out elsewhere": (
        "workspaces/test_create.py::test_a_branch_checked_out_in_a_workspace_is_refused_with_its_slug",
        "cli/test_mcp.py::test_02_a_branch_that_is_checked_out_is_said_the_same",
    ),
    "3 the target is missing, empty or full": (
        "workspaces/test_create.py::test_an_empty_target_folder_is_used_and_a_full_one_refused",
        "git/test_adding.py::test_a_parent_that_cannot_be_made",
    ),
    "4 empty folders among Git's records": (
        "workspaces/test_create.py::test_two_empty_admin_folders_disturb_nothing",
        "git/test_worktrees.py::test_empty_folders_under_worktrees_are_nobodys",
    ),
    "5 many creations at once from a remote branch": (
        "workspaces/test_many.py::test_twenty_four_creations_eight_at_once",
        "workspaces/test_create.py::test_no_upstream_is_set_to_the_base",
    ),
    "6 smudge filters and a lost LFS server": (
        "git/test_fidelity.py::test_a_smudge_filter",
        "workspaces/test_layouts.py::test_a_lost_lfs_server_is_one_sentence_and_leaves_nothing",
    ),
    "7 a sparse cone": ("git/test_fidelity.py::test_the_cone_of_the_source_is_taken_over",),
    "8 formats that libgit2 does not read": (
        "git/test_fidelity.py::test_sha256",
        "git/test_fidelity.py::test_a_partial_clone",
        "git/test_fidelity.py::test_a_split_index",
        "git/test_fidelity.py::test_reftable",
        "workspaces/test_layouts.py::test_a_workspace_is_what_git_worktree_add_would_have_made",
    ),
    "9 an ignored file goes with a removal": (
        "workspaces/test_remove.py::test_ignored_files_are_reported_and_can_be_brought_back",
        "workspaces/test_restore.py::test_everything_comes_back_and_a_removed_ignored_file_with_it",
    ),
    "10 locked, with its folder and without": (
        "workspaces/test_remove.py::test_a_locked_workspace_is_refused_with_its_reason",
        "workspaces/test_cases.py::test_10_locked_and_its_folder_missing_is_refused_with_the_reason",
        "workspaces/test_prune.py::test_what_would_lose_something_is_kept_with_the_reason",
    ),
    "11 remove without a name, main on another branch": (
        "cli/test_selection.py::test_remove_and_detach_never_mean_the_current_directory",
        "workspaces/test_remove.py::test_main_is_never_removed",
    ),
    "12 a branch in the middle of a rebase elsewhere": (
        "workspaces/test_create.py::test_a_branch_in_the_middle_of_something_elsewhere_is_refused",
    ),
    "13 variables of a hook": (
        "workspaces/test_create.py::test_inherited_git_variables_change_nothing",
        "workspaces/test_cases.py::test_13_variables_of_a_hook_lead_nothing_astray",
        "cli/test_selection.py::test_git_variables_of_a_hook_change_nothing",
    ),
    "14 a folder deleted by hand": (
        "workspaces/test_cases.py::test_14_a_folder_deleted_by_hand_can_be_created_again",
        "workspaces/test_prune.py::test_missing_ones_go_only_when_asked",
        "workspaces/test_prune.py::test_the_state_of_every_workspace",
    ),
    "15 squashed and edited again; a minute old": (
        "workspaces/test_prune.py::test_every_way_of_merging_is_seen",
        "workspaces/test_prune.py::test_a_new_branch_is_not_merged_and_neither_is_one_that_main_left_behind",
    ),
    "16 the shell stands in what is removed": (
        "cli/test_shells.py::test_removing_where_the_shell_stands_takes_it_to_main",
        "cli/test_shells.py::test_pruning_where_the_shell_stands_takes_it_to_main",
        "cli/test_merging.py::test_a_yes_removes_it_and_its_branch_and_the_shell_goes_to_main",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_its_tests(case: str):
    for named in CASES[case]:
        file, _, name = named.partition("::")
        tree = ast.parse((TESTS / file).read_text())
        found = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith(name)]
        assert len(found) == 1, named


def test_no_case_is_left_out():
    assert [int(case.split()[0]) for case in CASES] == list(range(1, 17))
