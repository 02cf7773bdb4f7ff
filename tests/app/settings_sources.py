"""Where settings come from: variables, and a file."""

from pathlib import Path

SASL = {
    "OSLRAU_SECURITY_PROTOCOL": "SASL_SSL",
    "OSLRAU_SASL_USERNAME": "meter",
    "OSLRAU_SASL_PASSWORD": "hunter-2",
}


def toml(folder: Path, content: str | bytes | None) -> Path:
    """Return the path of a file of settings, which is missing without a content."""
    path = folder / "settings.toml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
