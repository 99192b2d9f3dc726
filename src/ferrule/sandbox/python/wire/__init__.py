"""The protocol between parent and child: frames of JSON and bytes, and Python values encoded in them without pickle."""
