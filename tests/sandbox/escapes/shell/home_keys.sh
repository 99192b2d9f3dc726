# Read the keys in the home folder.
#
# family: shell
# canary: secret
# stops: full, container
# root: no

cat ~/.ssh/id_ed25519
