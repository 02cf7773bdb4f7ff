from __future__ import annotations

import logging

from faust_oslrau.app.logs import FewRepeats


def _passes(repeats, name, message):
    return repeats.filter(logging.LogRecord(name, logging.ERROR, "", 0, message, (), None))


def test_a_librarys_message_passes_once():
    repeats = FewRepeats()
    assert _passes(repeats, "aiokafka.client", "no broker at %s")
    assert not _passes(repeats, "aiokafka.client", "no broker at %s")
    assert _passes(repeats, "aiokafka.client", "something else")


def test_our_own_messages_always_pass():
    repeats = FewRepeats()
    assert all(_passes(repeats, "faust_oslrau.app.emitter", "waiting") for _ in range(3))
