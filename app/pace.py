"""How often a worker does what it does again and again, with how many records, for how long."""

from __future__ import annotations

COMMIT_SECONDS = 1.0
"""From one commit of offsets to the next: what a crash repeats at most, at a request a second."""

BATCH_RECORDS = 4096
"""Most records of a partition that are processed at a time: more gain nothing, and delay others."""

SHORT_BLOCK_SECONDS = 0.02
"""Longest that a block of records may take in the event loop, which waits for it."""

SNAPSHOT_RECORDS = 100_000
"""Most records from one snapshot to the next: a restart learns as many again within seconds."""

METADATA_SECONDS = 30.0
"""How long new partitions of a source topic may go unnoticed, at a request for each refresh."""
