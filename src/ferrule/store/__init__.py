"""Floor 7: conversations in one SQLite file: branched, searched, shared by several processes.

    with Store("conversations.db") as store:
        id = store.save(run.conversation, pending=run.pending)
        kept = store.load(id)

A message is stored once, by the SHA-256 of its JSON, and a conversation is a head in a tree of messages, so forks share
their common messages. Conversations are stored without loss: see `formats/conversation_json.py`.
"""

from __future__ import annotations

from ferrule.store.conversations import Store, StoredConversation
from ferrule.store.rows import ConversationSummary
from ferrule.store.search import SearchHit

__all__ = ["ConversationSummary", "SearchHit", "Store", "StoredConversation"]
