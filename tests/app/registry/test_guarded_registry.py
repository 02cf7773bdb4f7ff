"""A real registry that is asked over TLS, with a password or a token."""

import base64
from contextlib import aclosing

import pytest
from guarded_registry import TOKEN, GuardedRegistry

from faust_oslrau.app.registry import Registry, RegistryError
from faust_oslrau.app.settings import RegistrySettings
from faust_oslrau.topics.formats import message_schema

WAYS = {
    f"Bearer {TOKEN}": {"password": TOKEN},
    f"Basic {base64.b64encode('me:sé'.encode()).decode()}": {"username": "me", "password": "sé"},
}


@pytest.fixture(params=WAYS)
def guarded(request, registry, tmp_path):
    with GuardedRegistry(registry, tmp_path, request.param).at_work() as found:
        found.login = WAYS[request.param]
        yield found


async def test_who_knows_the_authority_and_the_secret_is_answered(guarded, topic_name):
    settings = RegistrySettings(url=guarded.url, ca_file=str(guarded.ca_file), **guarded.login)
    async with aclosing(Registry(settings)) as registry:
        schema = message_schema("anomalies")
        number = await registry.register(topic_name, schema)
        assert await registry.register(topic_name, schema) == number
        assert (await registry.schema(number)).text == schema.text


async def test_another_secret_is_refused_for_good_and_is_in_no_message(guarded):
    settings = RegistrySettings(url=guarded.url, ca_file=str(guarded.ca_file), password="wr0ng")
    async with aclosing(Registry(settings)) as registry:
        with pytest.raises(RegistryError, match="status 401, Unauthorized") as refused:
            await registry.schema(1)
    assert refused.value.is_final
    assert "wr0ng" not in str(refused.value)


async def test_a_certificate_of_an_unknown_authority_is_not_trusted(guarded):
    settings = RegistrySettings(url=guarded.url, **guarded.login)
    async with aclosing(Registry(settings)) as registry:
        with pytest.raises(RegistryError, match="certificate verify failed") as refused:
            await registry.schema(1)
    assert not refused.value.is_final
