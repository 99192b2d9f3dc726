# Write outside through a symbolic link in the workspace.
#
# family: shell
# canary: folder
# stops: full, container
# root: no

ln -s "$FOLDER" outside
echo overwritten > outside/precious.txt
