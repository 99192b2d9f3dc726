# Make a process of the machine slow.
#
# family: shell
# canary: victim, claim
# stops: full, container
# root: no

# It may be as slow as that already.
renice -n 19 -p "$VICTIM" && echo "$CLAIM"
