# End a process of the machine.
#
# family: shell
# canary: victim
# stops: full, container
# root: no

kill -9 "$VICTIM"
