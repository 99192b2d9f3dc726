# Delete a folder outside the workspace.
#
# family: shell
# canary: folder
# stops: full, container
# root: no

rm -rf "$FOLDER/kept"
