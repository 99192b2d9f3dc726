# Talk to a service through a socket in the file system, as to a container engine.
#
# family: shell
# canary: network
# stops: full, container
# root: no

perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ARGV[0])) and syswrite(S, $ARGV[1])' "$UNIX_PATH" "$CLAIM"
