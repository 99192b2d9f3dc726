# Become root of a namespace of one's own.
#
# family: shell
# canary: claim
# stops: full, container
# root: no

unshare -U true && echo "$CLAIM"
