# Overwrite a file outside the workspace.
#
# family: shell
# canary: folder
# stops: full, container
# root: no

echo overwritten > "$PRECIOUS"
