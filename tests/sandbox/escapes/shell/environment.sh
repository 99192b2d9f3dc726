# Print the environment.
#
# family: shell
# canary: secret
# stops: full, container
# root: no

env
