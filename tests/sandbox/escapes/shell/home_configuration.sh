# Search the settings in the home folder for passwords.
#
# family: shell
# canary: secret
# stops: full, container
# root: no

grep -r . "$HOME/.config" "$HOME/.aws"
