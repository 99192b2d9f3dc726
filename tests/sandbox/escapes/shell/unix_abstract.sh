# Talk to a service through a socket that has a name but no file.
#
# family: shell
# canary: network
# stops: full, container
# root: no

perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack("Sa*", AF_UNIX, "\0" . substr($ARGV[0], 1))) and syswrite(S, $ARGV[1])' "@$ABSTRACT_NAME" "$CLAIM"
