"""How tool calls are written for, and read from, each family of models. Pure text: no ids, no I/O."""
