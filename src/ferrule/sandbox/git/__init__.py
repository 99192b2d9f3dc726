"""What ferrule knows of git: its programs, repositories, settings and objects, and what each of them can make git run.

`program` runs git without settings of others, `commands` reads git command lines; `repositories`, `settings` and
`control_files` find what has to be protected, `after_command` checks what a command left; `state` tells the branch and
whether anything was committed, `tracked_files` and `ignored_files` ask git about files, `objects` keeps contents as git
does.
"""
