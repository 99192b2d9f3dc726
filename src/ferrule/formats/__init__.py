"""Conversation files of others, read and written without loss. Pure: text in, conversations out."""
