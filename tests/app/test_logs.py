import io
import json
import logging
import sys
from types import SimpleNamespace

import pytest
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaError
from aiokafka.protocol.admin import SaslAuthenticateRequest_v1

from faust_oslrau.app import logs
from faust_oslrau.app.logs import (
    CoordinatorFilter,
    JsonFormatter,
    ReadableFormatter,
    RepeatFilter,
    at,
    readable,
    set_up_logging,
)


def _passes(repeats, name, message):
    return repeats.filter(logging.LogRecord(name, logging.ERROR, "", 0, message, (), None))


def _record(message, *arguments, error=None, **extra):
    record = logging.LogRecord("app.place", logging.WARNING, "", 0, message, arguments, error)
    vars(record).update(extra)
    return record


def test_a_librarys_message_passes_once_and_our_own_always():
    repeats = RepeatFilter()
    assert _passes(repeats, "aiokafka.client", "no broker at %s")
    assert not _passes(repeats, "aiokafka.client", "no broker at %s")
    assert _passes(repeats, "aiokafka.client", "something else")
    assert all(_passes(repeats, "faust_oslrau.app.kafka.emitter", "waiting") for _ in range(3))


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(logs.time, "monotonic", lambda: clock.now)
    return clock


def test_a_group_without_a_coordinator_is_an_error_after_ten_seconds(clock):
    coordinator = CoordinatorFilter()
    error = GroupCoordinatorNotAvailableError()
    passed = []
    for clock.now in (1000.0, 1000.1, 1009.0, 1010.0, 1011.0, 2000.0, 2001.0):
        record = _record("Group Coordinator Request failed: %s", error)
        passed.append(coordinator.filter(record))
    assert passed == [False, False, False, True, True, False, False]
    assert coordinator.filter(_record("Group Coordinator Request failed: %s", KafkaError()))


def test_a_log_line_is_one_json_object_with_its_partition_and_offset():
    line = JsonFormatter().format(_record("%d bytes\nread", 7, **at(("features", 2), 4711)))
    fact = json.loads(line)
    assert "\n" not in line
    assert fact.pop("time").endswith("+00:00")
    assert fact == {
        "level": "WARNING", "logger": "app.place", "message": "7 bytes\nread", "topic": "features",
        "partition": 2, "offset": 4711,
    }  # fmt: skip


def test_text_from_outside_cannot_begin_a_log_line():
    line = ReadableFormatter().format(_record("field %s", "a\n2026 INFO all is well\x1b[2J"))
    assert line.endswith(r"WARNING app.place: field a\n2026 INFO all is well\x1b[2J")


@pytest.mark.parametrize("formatter", [ReadableFormatter, JsonFormatter])
@pytest.mark.parametrize("secret", ["hunter2", 'p"ä\\ss\'"'])
def test_an_error_brings_its_trace_and_a_secret_is_masked_wherever_it_comes_up(formatter, secret):
    # What a client may log at DEBUG, and an error that quotes a setting.
    request = SaslAuthenticateRequest_v1(f"\0me\0{secret}".encode())
    try:
        raise ValueError(f"password {secret}")
    except ValueError:
        record = _record("request %s, password %s", request, secret, error=sys.exc_info())
    line = formatter([secret]).format(record)
    assert "Traceback" in line and "ValueError: password (secret)" in line
    assert line.count("(secret)") == 3
    assert not any(form in line for form in (secret, repr(secret.encode())[2:-1]))


@pytest.mark.parametrize("is_terminal", [False, True])
def test_libraries_and_warnings_go_the_same_way_readable_on_a_terminal(is_terminal, monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    try:
        set_up_logging("INFO")
        logging.getLogger("aiokafka.conn").error("gone")
        logging.getLogger("py.warnings").warning("old")
        sys.excepthook(ValueError, ValueError("broken"), None)
    finally:
        logging.captureWarnings(False)
        for name in ("aiokafka", "faust", "mode", "aiohttp"):
            logging.getLogger(name).setLevel(logging.NOTSET)
        logging.getLogger().setLevel(logging.WARNING)
    lines = stream.getvalue().splitlines()
    if is_terminal:
        assert [line.rpartition(": ")[2] for line in lines] == ["gone", "old", "broken"]
    else:
        told = [json.loads(line)["message"] for line in lines]
        assert told == ["gone", "old", "the worker failed: ValueError('broken')"]


def test_a_line_of_json_can_be_read_as_on_a_terminal():
    record = _record("gone: %s", 'said "no"')
    line = JsonFormatter().format(record)
    assert readable(line).endswith(': gone: said "no"') and record.levelname in readable(line)
    for other in ("a traceback", "7", "{}", '{"time": 1}'):
        assert readable(other) == other
