# Ignore every polite signal.
#
# family: shell
# canary: time
# stops: full, container
# root: no
# seconds: 0.2

trap '' TERM INT HUP PIPE
while true; do sleep 1; done
