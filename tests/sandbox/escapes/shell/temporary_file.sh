# Leave a file in the temporary folder of the machine.
#
# family: shell
# canary: leftover
# stops: full, container
# root: no

echo evil > "/tmp/$NAME"
