"""The tables of a results file, as SQL; docs/reference/results.md describes the columns.

Rows are only inserted: a change, such as that of a point's status, is a new row. Triggers refuse UPDATE and DELETE on
every table, and an INSERT OR REPLACE that would replace a row.
"""

from __future__ import annotations

import re
from typing import Final

APPLICATION_ID: Final = 0x70756D69
"""``PRAGMA application_id`` of a results file: ``pumi``."""

SCHEMA_VERSION: Final = 2
"""``PRAGMA user_version`` of a results file; files of other versions are refused."""

_REFUSAL: Final = "results are append-only"

TABLES: Final = {
    "study": """
        id INTEGER PRIMARY KEY CHECK (id = 1),
        created TEXT NOT NULL,
        format INTEGER NOT NULL,
        name TEXT NOT NULL,
        study TEXT NOT NULL,
        toml TEXT
    """,
    "points": """
        point INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        target TEXT NOT NULL,
        device TEXT NOT NULL,
        axes TEXT NOT NULL,
        settings TEXT NOT NULL,
        derived TEXT NOT NULL,
        measure TEXT NOT NULL,
        baseline INTEGER REFERENCES points (point),
        is_baseline INTEGER NOT NULL,
        against INTEGER REFERENCES points (point),
        is_against INTEGER NOT NULL DEFAULT 0
    """,
    "runs": """
        run INTEGER PRIMARY KEY,
        started TEXT NOT NULL,
        pumice TEXT NOT NULL,
        python TEXT NOT NULL,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        command TEXT NOT NULL,
        environment TEXT NOT NULL,
        repeat INTEGER NOT NULL DEFAULT 1
    """,
    "run_ends": """
        run INTEGER PRIMARY KEY REFERENCES runs (run),
        ended TEXT NOT NULL,
        outcome TEXT NOT NULL
    """,
    "devices": """
        run INTEGER NOT NULL REFERENCES runs (run),
        device TEXT NOT NULL,
        name TEXT NOT NULL,
        driver TEXT NOT NULL,
        facts TEXT NOT NULL,
        PRIMARY KEY (run, device)
    """,
    "samples": """
        point INTEGER NOT NULL REFERENCES points (point),
        number INTEGER NOT NULL,
        run INTEGER NOT NULL REFERENCES runs (run),
        block INTEGER NOT NULL,
        phase TEXT NOT NULL CHECK (phase IN ('first', 'warmup', 'sample')),
        flags INTEGER NOT NULL,
        started_ns INTEGER NOT NULL,
        total_ns REAL NOT NULL,
        create_ns REAL,
        update_ns REAL,
        record_ns REAL,
        submit_ns REAL,
        queue_ns REAL,
        execute_ns REAL,
        wake_ns REAL,
        read_ns REAL,
        device_ns REAL,
        overlap_ns REAL,
        deviation_ns REAL,
        device_begin INTEGER,
        device_end INTEGER,
        dispatches INTEGER NOT NULL,
        preemptions INTEGER,
        stage TEXT NOT NULL,
        barrier TEXT NOT NULL,
        cpu_ns REAL,
        call_ns REAL,
        PRIMARY KEY (point, number)
    """,
    "statuses": """
        id INTEGER PRIMARY KEY,
        point INTEGER NOT NULL REFERENCES points (point),
        run INTEGER NOT NULL REFERENCES runs (run),
        changed TEXT NOT NULL,
        status TEXT NOT NULL,
        reason TEXT NOT NULL
    """,
    "clocks": """
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (run),
        device TEXT NOT NULL,
        host_ns INTEGER NOT NULL,
        device_ticks INTEGER,
        deviation_ns REAL,
        ns_per_tick REAL,
        calibrated INTEGER,
        frequency_mhz REAL,
        memory_mhz REAL,
        cpu_mhz REAL,
        temperature_c REAL,
        power_w REAL,
        throttle TEXT
    """,
    "reference_samples": """
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (run),
        device TEXT NOT NULL,
        started_ns INTEGER NOT NULL,
        duration_ns REAL NOT NULL,
        kind TEXT NOT NULL DEFAULT 'compute',
        point INTEGER REFERENCES points (point),
        load TEXT NOT NULL DEFAULT ''
    """,
    "peaks": """
        run INTEGER NOT NULL REFERENCES runs (run),
        device TEXT NOT NULL,
        name TEXT NOT NULL,
        value REAL NOT NULL,
        details TEXT NOT NULL,
        PRIMARY KEY (run, device, name)
    """,
    "notes": """
        id INTEGER PRIMARY KEY,
        run INTEGER REFERENCES runs (run),
        point INTEGER REFERENCES points (point),
        created TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL
    """,
    "machine_states": """
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (run),
        host_ns INTEGER NOT NULL,
        span_ns REAL,
        wake_ns REAL,
        wake_p90_ns REAL,
        steal REAL,
        pressure REAL,
        others REAL,
        run_delay REAL,
        load REAL,
        cpu_mhz REAL
    """,
    "files": """
        name TEXT PRIMARY KEY NOT NULL,
        sha256 TEXT NOT NULL,
        size INTEGER NOT NULL,
        content BLOB,
        role TEXT NOT NULL
    """,
    "observations": """
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (run),
        point INTEGER NOT NULL REFERENCES points (point),
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        name TEXT NOT NULL,
        value NUMERIC NOT NULL,
        unit TEXT NOT NULL,
        details TEXT NOT NULL
    """,
}
"""The columns of each table."""

_POINT_STATUS: Final = """
    CREATE VIEW point_status AS
    SELECT points.point AS point, coalesce(statuses.status, 'pending') AS status,
           coalesce(statuses.reason, '') AS reason, statuses.run AS run, statuses.changed AS changed
    FROM points LEFT JOIN statuses
         ON statuses.id = (SELECT max(id) FROM statuses AS latest WHERE latest.point = points.point)
"""


REPEATS: Final = "SELECT coalesce(max(repeat), 0) FROM runs"
"""A query for the number of repeats that were begun."""

STATUSES: Final = """
    SELECT point, repeat, status, reason, max(id) FROM statuses JOIN runs USING (run) GROUP BY point, repeat
"""
"""A query for the latest status of each point in each repeat that has one."""


def schema_statements() -> list[str]:
    """Returns the statements that create an empty results file in one transaction: tables with their triggers, an index
    and a view.
    """
    statements = []
    for table, columns in TABLES.items():
        clause = re.search(r"PRIMARY KEY \((.*)\)", columns)
        key = clause[1].split(", ") if clause else columns.split()[:1]
        # A table with a key of several columns is stored in the order of its key: a point's samples lie together.
        statements.append(f"CREATE TABLE {table} ({columns}){' WITHOUT ROWID' if len(key) > 1 else ''}")
        refusal = f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}: {table}'); END"
        statements.append(f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refusal}")
        statements.append(f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refusal}")
        same = " AND ".join(f"{name} = NEW.{name}" for name in key)
        exists = f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})"
        statements.append(f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} {exists} {refusal}")
    return [
        *statements,
        "CREATE INDEX statuses_of_point ON statuses (point, id)",
        _POINT_STATUS,
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {SCHEMA_VERSION}",
    ]
