"""A gate on a real database in the sealed data folder, with short waits."""

from pathlib import Path

import pytest
from exeora_ws.database import Database
from exeora_ws.policy.approvals import APPROVAL_MIGRATIONS, Approvals
from exeora_ws.policy.attendance import Attendance
from exeora_ws.policy.audit import AUDIT_MIGRATIONS
from exeora_ws.policy.gate import Gate
from exeora_ws.policy.signing import Signer


@pytest.fixture
def data(home: Path) -> Path:
    return home / "data" / "exeora"


@pytest.fixture
def database(data: Path) -> Database:
    return Database(data / "exeora.db", {"audit": AUDIT_MIGRATIONS, "approvals": APPROVAL_MIGRATIONS})


@pytest.fixture
def approvals(database: Database) -> Approvals:
    return Approvals(database)


@pytest.fixture
def attendance(data: Path) -> Attendance:
    return Attendance(data / "locks")


@pytest.fixture
def signer(data: Path) -> Signer:
    return Signer(data / "approval.key")


@pytest.fixture
def gate(approvals: Approvals, attendance: Attendance, signer: Signer) -> Gate:
    return Gate(approvals, attendance, signer, seconds=20)


@pytest.fixture
def hasty_gate(approvals: Approvals, attendance: Attendance, signer: Signer) -> Gate:
    return Gate(approvals, attendance, signer, seconds=0.3)
