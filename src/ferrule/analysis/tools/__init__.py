"""The analyst's own tools, ordinary ferrule tools whose results are structured."""
