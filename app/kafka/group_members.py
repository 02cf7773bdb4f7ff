"""Finds members of the consumer group that are no workers.

Such a member is assigned partitions that then get no scores, and commits offsets of its own.
"""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer
from aiokafka.client import ConnectionGroup
from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.admin import DescribeGroupsRequest


async def foreign_members(kafka: AIOKafkaConsumer) -> dict[str, str]:
    """Return the client id and host of each member whose client id is not this consumer's.

    All workers of a deployment have the same client id. The result is empty if the broker does not
    describe groups.

    Raises
    ------
    KafkaError
        The group's coordinator does not answer.
    """
    client, coordinator = kafka._client, kafka._coordinator
    if coordinator.coordinator_id is None:
        raise KafkaError("the group has no coordinator")
    request = DescribeGroupsRequest([coordinator.group_id], include_authorized_operations=False)
    try:
        answer = await client.send(
            coordinator.coordinator_id, request, group=ConnectionGroup.COORDINATION
        )
    except NotImplementedError:  # aiokafka's error for a broker without this request
        return {}
    error_code, _, _, _, _, members, *_ = answer.groups[0]
    if error_code:
        raise for_code(error_code)
    return {
        member_id: f"client {client_id!r} at {host.lstrip('/')}"
        for member_id, client_id, host, *_ in members
        if client_id != client._client_id
    }
