# Say more than anyone wants to hear.
#
# family: shell
# canary: flood
# stops: full, container
# root: no

head -c 40000000 /dev/zero
