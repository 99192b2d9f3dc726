"""An analysis as a page that shows how each number was made, and as a notebook that makes them again."""
