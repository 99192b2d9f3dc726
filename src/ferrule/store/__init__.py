"""Conversations kept in one SQLite file: branched, searched, shared by several processes.

    with Store("conversations.db") as store:
        id = store.save(run.conversation, pending=run.pending)
        kept = store.load(id)

A message is kept once, by the SHA-256 of its JSON, and a conversation is a head in a tree of them, so forks share what
they have in common. What is kept of a conversation is all of it: see `conversation_json.py`.
"""

from __future__ import annotations

from ferrule.store.conversations import Store, Stored
from ferrule.store.rows import Summary
from ferrule.store.search import Hit

__all__ = ["Hit", "Store", "Stored", "Summary"]
