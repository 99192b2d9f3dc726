# Change the mode of a file outside the workspace.
#
# family: shell
# canary: folder
# stops: full, container
# root: no

chmod 777 "$PRECIOUS"
