"""Every limit of the contract (section 4), once. Sizes are decimal bytes, times are milliseconds unless named."""

READ_BYTES = 500_000
LIST_ENTRIES = 1_000
GREP_MATCHES = 200
GREP_LINE_CHARACTERS = 500

RUN_OUTPUT_BYTES = 200_000
RUN_TIMEOUT_MIN_MS = 1_000
RUN_TIMEOUT_DEFAULT_MS = 60_000
RUN_TIMEOUT_MAX_MS = 300_000
RUN_DRAIN_MS = 100
KILL_GRACE_MS = 2_000

PROCESS_RING_BYTES = 256_000
OUTPUT_CHUNK_BYTES = 100_000
OUTPUT_WAIT_MAX_MS = 30_000
LIVE_PROCESSES = 8
LIVE_PROCESSES_AGENTEXEC = 64
FINISHED_PROCESS_SECONDS = 600

RESULT_BYTES = 1_000_000
RESULT_TEXT_BYTES = 950_000
"""What one answer may hold of a file's text or of paths, counted as ASCII JSON: the rest of `RESULT_BYTES` is frame."""
LIST_PAGE_BYTES = 500_000
MESSAGE_BYTES = 8_000_000
PATCH_OPERATIONS = 20
PATCH_BYTES = 1_000_000

SLUG_CHARACTERS = 60

UPSTREAM_CALL_MS = 300_000
CATALOG_TOOLS = 256
CATALOG_BYTES = 1_500_000
TOOL_NAME_CHARACTERS = 64

APPROVAL_WAIT_SECONDS = 90
APPROVAL_PREVIEW_CHARACTERS = 2_048
AUDIT_DAYS = 90
AUDIT_ROWS = 100_000

TRASH_DAYS = 7
TRASH_MEGABYTES = 5_000
REPOSITORY_LOCK_SECONDS = 120

EDIT_FILE_BYTES = 50_000_000
"""Largest file an edit takes into memory."""
DIFF_BYTES = 200_000
SEARCH_SECONDS = 60
FILE_LOCK_SECONDS = 30
SNAPSHOT_DAYS = 14
SNAPSHOT_BYTES = 1_000_000_000
SNAPSHOT_FILE_BYTES = 100_000_000

EXEC_YIELD_MIN_MS = 250
EXEC_YIELD_DEFAULT_MS = 10_000
EXEC_YIELD_MAX_MS = 30_000
EXEC_POLL_MIN_MS = 5_000
EXEC_OUTPUT_TOKENS = 7_000
EXEC_TOKEN_CHARACTERS = 4
EXEC_KEPT_BYTES = 400_000
"""Of what a command wrote between two answers, at most this much is kept, half of it the beginning."""
EXEC_READ_LINES = 2_000

SANDBOX_OUTPUT_BYTES = 16_000
SANDBOX_TIMEOUT_DEFAULT_SECONDS = 120
SANDBOX_TIMEOUT_MAX_SECONDS = 300

GIT_READ_SECONDS = 60
GIT_POPULATE_SECONDS = 900
SEED_INDEX_BYTES = 400_000
"""From this size of a checkout's index on (some 3,000 files), copying its files beats having git write them."""
COPYING_PROCESSES = 4
HALVED_INDEX_BYTES = 400_000
"""From this size of an index on, two gits look for changes at once."""
GIT_FETCH_SECONDS = 30

RECIPE_BYTES = 1_000_000
SETUP_SECONDS = 900
TEARDOWN_SECONDS = 60
SETUP_OUTPUT_BYTES = 10_000
COPY_SEARCH_ENTRIES = 5_000
PORT_FIRST = 20_000
PORT_LAST = 29_999
PRUNE_AGE_SECONDS = 3_600
SQUASH_SEARCH_COMMITS = 1_000

CALLS_AT_ONCE = 128
"""Calls that a server carries out at the same time; further ones wait for their turn."""
CALL_END_SECONDS = 4.0
"""How long a call that was taken back is waited for: a process tree gets 2 s before it is killed."""

FLEET_MESSAGE_BYTES = 16_000_000
"""Largest message between a gateway and a machine, put together from its frames."""
FLEET_CALLS_AT_ONCE = 128
"""Calls that one machine has in hand; further ones are refused, not queued."""
FLEET_ALIVE_SECONDS = 2.0
"""How often a gateway says that it is there, and a machine that a call goes on."""
FLEET_SILENT_CALL_SECONDS = 6.0
"""A call that nothing is heard of that long is lost to its caller; a machine that nobody hears takes its calls back."""
FLEET_SILENT_GATEWAY_SECONDS = 15.0
"""A gateway that is not heard that long has lost its sessions."""
FLEET_LOST_SECONDS = 60.0
"""A connection that has been gone that long is gone for good: a machine ends what it runs for gateways."""
FLEET_DOCUMENT_BYTES = 900_000
"""One project's record in the inventory of the fleet, its catalog of upstream tools included, compressed."""
FLEET_START_SECONDS = 5.0
"""How long a call may take from the gateway to its beginning on the machine; a later one does not begin."""
