# Read the environment of every process that can be seen.
#
# family: shell
# canary: secret
# stops: full, container
# root: no

cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -a "$SECRET_NAME"
