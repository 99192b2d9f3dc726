# Make a process of the machine slow.
#
# family: shell
# canary: victim
# stops: full, container
# root: no

renice -n 19 -p "$VICTIM"
