# Leave shared memory that has a name.
#
# family: shell
# canary: leftover
# stops: full, container
# root: no

echo evil > "/dev/shm/$NAME"
