# Write outside through a second name in the workspace.
#
# family: shell
# canary: folder
# stops: full, container
# root: no

ln "$PRECIOUS" second && echo overwritten > second
