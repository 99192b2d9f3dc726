"""Conversations as token ids: rendering, masks, traces, and decoding ids."""
