"""Conversations as token ids: rendering, masks, traces, and text back from ids."""
