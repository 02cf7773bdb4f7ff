"""Runs librdkafka's mock cluster, part of the wheel of confluent-kafka, as a broker.

It speaks Kafka's protocol on the loopback interface, without Java and without a download. It stores
at most 5 MiB or 100,000 messages of a partition, in memory, and supports neither several members of
a group nor CreateTopics. It serves demos; it does not show how a real Kafka behaves.
"""

from __future__ import annotations

import ctypes
import time
from typing import Self

from faust_oslrau.app.errors import BrokerError, TopicError

_PRODUCER = 0  # any client will do as the owner of the cluster
_TEXT = 512
# The cluster's thread overlooks a call that comes right after another one, and sleeps for a second.
_PAUSE_SECONDS = 0.002


class EmbeddedBroker:
    """A mock cluster of one node, with any number of topics."""

    def __init__(self) -> None:
        self._library = _librdkafka()
        self._client: int | None = None
        self._cluster: int | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The broker's address."""
        return str(self._library.rd_kafka_mock_cluster_bootstraps(self._running()).decode())

    def start(self) -> None:
        """Start the cluster; it is ready when this returns."""
        reason = ctypes.create_string_buffer(_TEXT)
        configuration = self._library.rd_kafka_conf_new()
        # No log: the client only owns the cluster, and would warn that it has no servers.
        self._library.rd_kafka_conf_set_log_cb(configuration, None)
        self._client = self._library.rd_kafka_new(_PRODUCER, configuration, reason, _TEXT)
        if not self._client:
            raise BrokerError(f"librdkafka could not create a client: {reason.value.decode()}")
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, 1)
        if not self._cluster:
            raise BrokerError("librdkafka could not start its mock cluster")
        # A group has one member here: no reason to wait three seconds for others.
        self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)

    def stop(self) -> None:
        """Stop the cluster and discard its messages."""
        if self._cluster:
            self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        if self._client:
            self._library.rd_kafka_destroy(self._client)
        self._cluster = self._client = None

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic.

        Raises
        ------
        TopicError
            The topic exists, or the broker does not create it.
        """
        error = self._library.rd_kafka_mock_topic_create(
            self._running(), name.encode(), partitions, 1
        )
        time.sleep(_PAUSE_SECONDS)
        if error:
            reason = self._library.rd_kafka_err2str(error).decode()
            raise TopicError(f"topic {name!r} with {partitions} partitions: {reason}")

    def __enter__(self) -> Self:
        """Start the cluster."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the cluster."""
        self.stop()

    def _running(self) -> int:
        if self._cluster is None:
            raise BrokerError("the embedded broker does not run")
        return self._cluster


def _librdkafka() -> ctypes.CDLL:
    try:
        from confluent_kafka import cimpl
    except ImportError:
        raise BrokerError(
            "the embedded broker needs confluent-kafka: pip install 'faust-oslrau[demo]'"
        ) from None
    # The extension also gives access to the symbols of librdkafka, wherever the wheel put it.
    library = ctypes.CDLL(cimpl.__file__)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    signatures = {
        "rd_kafka_conf_new": (pointer, []),
        "rd_kafka_conf_set_log_cb": (None, [pointer, pointer]),
        "rd_kafka_new": (pointer, [number, pointer, text, ctypes.c_size_t]),
        "rd_kafka_destroy": (None, [pointer]),
        "rd_kafka_err2str": (text, [number]),
        "rd_kafka_mock_cluster_new": (pointer, [pointer, number]),
        "rd_kafka_mock_cluster_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
        "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [pointer, ctypes.c_int32]),
        "rd_kafka_mock_topic_create": (number, [pointer, text, number, number]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
