# Read the workspace's own file of secrets.
#
# family: shell
# canary: secret
# stops: full, container
# root: no

cat .env
