"""A real Kafka that asks for TLS and a password or a certificate, and knows who may do what."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import trustme
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives import serialization as pem

from faust_oslrau.app.brokers import KafkaBroker

USER, PASSWORD = "worker", "correct-horse-7"
_MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_SECURITY = "org.apache.kafka.common.security"
_JAAS = f"{_SECURITY}.scram.ScramLoginModule required;"
# Tokens without a signature, which the broker believes.
_TOKENS = (
    f'{_SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";'
)
# The broker ends a connection whose token is older, or has expired.
TOKEN_SECONDS = 4


def new_token(user: str, seconds: float = TOKEN_SECONDS) -> str:
    """Return a token that expires after some seconds."""
    now = time.time()
    claims = {"sub": user, "iat": now - 60, "exp": now + seconds}
    texts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    parts = [base64.urlsafe_b64encode(text).rstrip(b"=") for text in texts]
    return b".".join([*parts, b""]).decode()


class Keys:
    """A certificate authority in a folder, with what it gave to the broker and to a client."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        broker = authority.issue_cert("127.0.0.1")
        client = authority.issue_cert("worker.test", common_name=USER)
        self.ca_file = folder / "ca.pem"
        self.cert_file = folder / "client.pem"
        self.key_file = folder / "client.key"
        self.broker_file = folder / "broker.pem"
        authority.cert_pem.write_to_path(self.ca_file)
        client.cert_chain_pems[0].write_to_path(self.cert_file)
        self.key_file.write_bytes(_pkcs8(client))
        self.broker_file.write_bytes(_pkcs8(broker) + broker.cert_chain_pems[0].bytes())


def _pkcs8(issued: trustme.LeafCert) -> bytes:
    """Return the private key in the only form that Kafka reads."""
    key = pem.load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    return key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())


@contextmanager
def secure_kafka(folder: Path, keys: Keys) -> Iterator[KafkaBroker]:
    """Run a broker: everything is allowed by PLAINTEXT, only what is granted by other ways."""
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.broker_file),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys.ca_file),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join([*_MECHANISMS, "OAUTHBEARER"]),
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": _TOKENS,
        "listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms": f"{TOKEN_SECONDS}000",
        **{
            f"listener.name.sasl_ssl.{name.lower()}.sasl.jaas.config": _JAAS for name in _MECHANISMS
        },
        # A client's certificate makes it the user of its common name.
        "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with KafkaBroker(folder, properties=properties, secure=("SASL_SSL", "SSL")) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        _add_user(admin)
        yield broker


def _add_user(admin: AdminClient) -> None:
    for mechanism in _MECHANISMS.values():
        known = ScramCredentialInfo(mechanism, 4096)
        new = UserScramCredentialUpsertion(USER, known, PASSWORD.encode())
        admin.alter_user_scram_credentials([new])[USER].result(60)


def _rule(
    permission: AclPermissionType,
    servers: str,
    kind: str,
    name: str,
    *operations: str,
    prefixed: bool = False,
) -> None:
    """Let the user do these operations on a topic, group, transactional_id or broker, or not."""
    pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    resource = (ResourceType[kind.upper()], name, pattern)
    who = (f"User:{USER}", "*")
    bindings = [
        AclBinding(*resource, *who, AclOperation[operation.upper()], permission)
        for operation in operations
    ]
    admin = AdminClient({"bootstrap.servers": servers})  # what it does ends with it
    for done in admin.create_acls(bindings).values():
        done.result(60)


allow = partial(_rule, AclPermissionType.ALLOW)
deny = partial(_rule, AclPermissionType.DENY)
"""Whatever else is allowed."""
