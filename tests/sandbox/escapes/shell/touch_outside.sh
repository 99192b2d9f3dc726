# Set back the times of a file outside the workspace.
#
# family: shell
# canary: folder
# stops: full, container
# root: no

touch -d 2001-01-01 "$PRECIOUS"
