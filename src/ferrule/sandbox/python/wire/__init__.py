"""How parent and child talk: frames of JSON and bytes, and the encoding of Python values in them, without pickle."""
