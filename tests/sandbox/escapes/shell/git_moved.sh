# Move the repository's folder away, and put another in its place.
#
# family: shell
# canary: workspace
# stops: full, container
# root: no

mv .git old && mkdir -p .git/hooks && touch .git/hooks/pre-commit
