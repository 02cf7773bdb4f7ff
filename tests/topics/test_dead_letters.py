from faust_oslrau.topics import Reason, Record, Rejection, dead_letter, message_bytes

REJECTION = Rejection(Reason.NOT_JSON, "unexpected end of data")
TRACE = ("trace", b"\x00\x01")
RECORD = Record("features", 3, 42, 1700000000000, b"pump-1", b'{"x": \xff', (TRACE,))
REASON_HEADERS = (
    ("oslrau-reason", b"not_json"), ("oslrau-detail", b"unexpected end of data"),
    ("oslrau-topic", b"features"), ("oslrau-partition", b"3"), ("oslrau-offset", b"42"),
)  # fmt: skip


def test_a_dead_letter_is_the_record_with_the_reason_behind_its_headers():
    letter = dead_letter(RECORD, REJECTION, 10_000)
    assert (letter.key, letter.value) == (RECORD.key, RECORD.value)
    assert (letter.offset, letter.timestamp) == (42, 1700000000000)
    assert letter.headers == (TRACE, *REASON_HEADERS)


def test_a_dead_letter_that_is_sent_again_names_its_last_rejection_only():
    first = dead_letter(RECORD, REJECTION, 10_000)
    large = dead_letter(RECORD._replace(value=b"x" * 300), REJECTION, 300)
    assert large.headers[-1][0] == "oslrau-left-out-bytes"
    for letter in (first, large):
        again = RECORD._replace(offset=43, headers=(*letter.headers, TRACE))
        found = dead_letter(again, Rejection(Reason.TOO_LARGE, "7 bytes"), 10_000).headers
        named = [name for name, _ in found if name.startswith("oslrau-")]
        assert named == [name for name, _ in REASON_HEADERS]
        assert dict(found) == dict(REASON_HEADERS) | {
            "oslrau-reason": b"too_large", "oslrau-detail": b"7 bytes", "oslrau-offset": b"43",
            "trace": TRACE[1],
        }  # fmt: skip


def test_a_null_key_and_a_null_value_stay_null():
    letter = dead_letter(RECORD._replace(key=None, value=None), REJECTION, 10_000)
    assert letter.key is None and letter.value is None


def test_what_does_not_fit_goes_as_reason_and_source_offset_alone():
    record = RECORD._replace(value=b"x" * 10_000)
    size = message_bytes(record.key, record.value, (*record.headers, *REASON_HEADERS))
    assert dead_letter(record, REJECTION, size).value == record.value
    letter = dead_letter(record, REJECTION, size - 1)
    assert letter.key is None and letter.value is None
    assert letter.headers == (*REASON_HEADERS, ("oslrau-left-out-bytes", str(size).encode()))


def test_headers_without_a_content_are_kept():
    letter = dead_letter(RECORD._replace(headers=(("empty", None),)), REJECTION, 10_000)
    assert letter.headers[0] == ("empty", None)


def test_a_detail_of_any_length_is_cut():
    rejection = Rejection(Reason.NOT_A_NUMBER, "é" * 100_000)
    assert message_bytes(None, None, dead_letter(RECORD, rejection, 10_000).headers) < 2_000


def test_a_detail_that_is_no_utf8_is_written_with_escapes():
    letter = dead_letter(RECORD, Rejection(Reason.WRONG_SCHEMA, "type \ud800"), 10_000)
    assert dict(letter.headers)["oslrau-detail"] == b"type \\ud800"
