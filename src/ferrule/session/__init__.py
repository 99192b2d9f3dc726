"""Floor 8: a conversation between a person and a model: approvals, what is shown, what is kept."""
