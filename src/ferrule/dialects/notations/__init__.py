"""The ways in which a call is written, one a file; a family of models is a declaration on one of them."""
