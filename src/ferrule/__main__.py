"""`python -m ferrule`: the command line, for an environment whose scripts are not on the path."""

from ferrule.cli import main

if __name__ == "__main__":
    main()
