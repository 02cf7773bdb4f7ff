"""Schemas of all messages: `python -m schemas.build` writes them and the table in the docs."""
