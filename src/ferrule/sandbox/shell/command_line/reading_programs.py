"""Programs that only read, and their options: data, from their documentation.

An option that isn't in the table makes a program's effects unknown: it may write, run a program, or name a file.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.sandbox.shell.command_line.options import OptionTable, parse_table

__all__ = ["READING_PROGRAMS", "TRUSTED_FOLDERS", "VERSION_PROGRAMS", "ReadingProgram"]

TRUSTED_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/")
"""A program named by a path in one of these is the one of its name; by any other path it may be anything."""


@dataclass(frozen=True, slots=True)
class ReadingProgram:
    """How a program reads.

    `skipped` operands come before the paths; the options in `instead` take their place. `paths` is whether the other
    operands are paths. With an option in `follows` it reads through the links below its paths, with one in `listing`
    paths that a file names. `check` names a further check in `outcome.py`. `is_recursive`: of a folder it reads all
    that is below, which `recursive_options` ask others to do. Without a `table`, no argument names a file to it.
    """

    table: OptionTable | None = None
    skipped: int = 0
    instead: tuple[str, ...] = ()
    paths: bool = True
    follows: tuple[str, ...] = ()
    listing: tuple[str, ...] = ()
    check: str = ""
    is_recursive: bool = False
    recursive_options: tuple[str, ...] = ()


def _names(text: str) -> list[str]:
    return text.split()


def _gnu(text: str, *, only_reads: bool = False, stops_at_operand: bool = False) -> OptionTable:
    return parse_table(f"{text} --help --version", only_reads=only_reads, stops_at_operand=stops_at_operand)


def _own(text: str, *, has_words: bool = False) -> OptionTable:
    """The options of a program that takes none by its beginning."""
    return parse_table(f"{text} --help --version", has_words=has_words, abbreviates=False)


_DIGITS = "-0123456789"
_CHECKSUM = (
    "-btzwr -c,--check -a,--algorithm= -l,--length= --binary --text --zero --warn --tag --untagged --raw --base64 "
    "--debug --ignore-missing --quiet --status --strict"
)
_OUTPUT_OF_LS = (
    "--all --almost-all --author --escape --block-size= --ignore-backups --color=? --directory --dired --classify=? "
    "--file-type --format= --full-time --group-directories-first --no-group --human-readable --si "
    "--dereference-command-line --dereference-command-line-symlink-to-dir --hide= --hyperlink=? --indicator-style= "
    "--inode --ignore= --kibibytes --literal --numeric-uid-gid --hide-control-chars --show-control-chars --quote-name "
    "--quoting-style= --reverse --size --sort= --time= --time-style= --tabsize= --width= --context --zero"
)
# None of their options makes them write or run anything; of a letter whose value is optional here, one in the next word
# counts as a path, as it is one for programs of other systems that have the same name.
_ONLY_READING = {
    "cat": "-AbeEnstTuvl --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs "
    "--show-nonprinting",
    "head": f"{_DIGITS} -qvz -c,--bytes= -n,--lines= --quiet --silent --verbose --zero-terminated",
    "tail": f"{_DIGITS} -fFqrvz -c,--bytes= -n,--lines= -s,--sleep-interval= --pid= --max-unchanged-stats= --follow=? "
    "--retry --quiet --silent --verbose --zero-terminated --debug",
    "wc": "-cmlLw --bytes --chars --lines --max-line-length --words --files0-from=LIST --total=",
    "nl": "-p -b,--body-numbering= -d,--section-delimiter= -f,--footer-numbering= -h,--header-numbering= "
    "-i,--line-increment= -l,--join-blank-lines= -n,--number-format= -s,--number-separator= "
    "-v,--starting-line-number= -w,--number-width= --no-renumber",
    "tac": "-br -s,--separator= --before --regex",
    "rev": "-hV0 --zero",
    "cut": "-nsz -b,--bytes= -c,--characters= -d,--delimiter= -f,--fields= --complement --only-delimited "
    "--output-delimiter= --zero-terminated",
    "paste": "-sz -d,--delimiters= --serial --zero-terminated",
    "join": "-iz -a= -e= -j= -o= -t= -v= -1= -2= --ignore-case --check-order --nocheck-order --header "
    "--zero-terminated",
    "comm": "-123iz --check-order --nocheck-order --output-delimiter= --total --zero-terminated",
    "fold": f"{_DIGITS} -bcs -w,--width= --bytes --characters --spaces",
    "fmt": f"{_DIGITS} -cstu -p,--prefix= -w,--width= -g,--goal= --crown-margin --split-only --tagged-paragraph "
    "--uniform-spacing",
    "expand": f"{_DIGITS} -i -t,--tabs= --initial",
    "unexpand": f"{_DIGITS} -a -t,--tabs= --all --first-only",
    "column": "-JdteLxhVm -c= -o= -s= -C=? -E=? -H=? -N=? -O=? -R=? -S=? -T=? -W=? -i=? -l=? -n=? -p=? -r=? "
    "--output-width= --output-separator= --separator= --table-column= --table-columns= --table-columns-limit= "
    "--table-right= --table-truncate= --table-noextreme= --table-wrap= --table-hide= --table-order= --table-name= "
    "--table-maxout --table-noheadings --table-header-repeat --table --tree= --tree-id= --tree-parent= --json "
    "--keep-empty-lines --fillrows --use-spaces= --wrap-separator= --color=?",
    "pr": f"{_DIGITS} -acdFfJmrtTv -e=? -i=? -n=? -s=? -S=? -D=? -N=? -W=? -h= -l= -o= -w= --columns= --across "
    "--show-control-chars --double-space --date-format= --expand-tabs=? --form-feed --header= --output-tabs=? "
    "--join-lines --length= --merge --number-lines=? --first-line-number= --indent= --no-file-warnings --separator=? "
    "--sep-string=? --omit-header --omit-pagination --show-nonprinting --width= --page-width= --pages=",
    "od": "-abBcdDeFfhHiIlLoOsvxX -A,--address-radix= -j,--skip-bytes= -N,--read-bytes= -t,--format= -S=? -w=? "
    "--strings=? --width=? --endian= --output-duplicates --traditional",
    **dict.fromkeys(
        ("hexdump", "hd"),
        "-bcCdohvxXV -e,--format= -f,--format-file=FILE -n,--length= -s,--skip= -L=? --color=? --one-byte-octal "
        "--one-byte-hex --one-byte-char --canonical --two-bytes-decimal --two-bytes-octal --two-bytes-hex "
        "--no-squeezing",
    ),
    "stat": "-LtFlnqrsx -f,--file-system -c,--format= --dereference --cached= --printf= --terse",
    "readlink": "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet --silent "
    "--verbose --zero",
    "realpath": "-emLPqszE --canonicalize --canonicalize-existing --canonicalize-missing --logical --physical --quiet "
    "--relative-to=FILE --relative-base=FILE --strip --no-symlinks --zero",
    "cmp": "-blsv -i,--ignore-initial= -n,--bytes= --print-bytes --verbose --quiet --silent",
    "sum": "-rs --sysv",
    "df": "-ahHiklPTvgmI -B,--block-size= -t=? -x=? --all --human-readable --si --inodes --local --no-sync --output=? "
    "--portability --sync --total --type= --print-type --exclude-type=",
    "uptime": "-prshV --pretty --since --raw --container",
}
_LS = f"-aAbBcCdDfFgGhHiklmnNopqQrRsStuUvxXZ1@eOPWy -L,--dereference -R,--recursive -I=? -T=? -w=? {_OUTPUT_OF_LS}"
_DU = (
    "-0abcDHhklmPSsxgnrA -L,--dereference -B,--block-size= -d,--max-depth= -t,--threshold= -X,--exclude-from=FILE "
    "-I=? --null --all --apparent-size --bytes --total --dereference-args --files0-from=LIST --human-readable --inodes "
    "--count-links --no-dereference --separate-dirs --si --summarize --time=? --time-style= --exclude= "
    "--one-file-system"
)
_GREP = (
    f"{_DIGITS} -EFGPiyvwxcLloqsbHhnTaIUzuV -e,--regexp= -f,--file=FILE -m,--max-count= -A,--after-context= "
    "-B,--before-context= -C,--context= -D,--devices= -d,--directories= -r,--recursive -R,--dereference-recursive "
    "-Z,--null --extended-regexp --fixed-strings --fixed-regexp --basic-regexp --perl-regexp --ignore-case "
    "--no-ignore-case --invert-match --word-regexp --line-regexp --count --color=? --colour=? --files-without-match "
    "--files-with-matches --only-matching --quiet --silent --no-messages --byte-offset --with-filename --no-filename "
    "--label= --line-number --initial-tab --group-separator= --no-group-separator --text --binary-files= --exclude= "
    "--exclude-from=FILE --exclude-dir= --include= --line-buffered --binary --null-data --unix-byte-offsets"
)
_DIFF = (
    f"{_DIGITS} -qsruNabBwiytTdcpEZenv -U= -C= -x= -I= -W= -F= -L= -D= -X,--exclude-from=FILE -S,--starting-file= "
    "--from-file=FILE --to-file=FILE --brief --report-identical-files --unified=? --context=? --recursive --new-file "
    "--unidirectional-new-file --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines "
    "--ignore-tab-expansion --ignore-trailing-space --ignore-file-name-case --no-ignore-file-name-case "
    "--ignore-matching-lines= --text --side-by-side --left-column --suppress-common-lines --suppress-blank-empty "
    "--strip-trailing-cr --no-dereference --minimal --color=? --palette= --normal --ed --rcs --show-c-function "
    "--show-function-line= --label= --width= --expand-tabs --initial-tab --tabsize= --exclude= --ifdef= "
    "--horizon-lines= --speed-large-files --line-format= --old-line-format= --new-line-format= "
    "--unchanged-line-format="
)
_RG = (
    "-iswxFlcnNvoHhIUPau0pqSLV. -L,--follow -e,--regexp= -f,--file=FILE -g= -t= -T= -A= -B= -C= -m= -d= -M= -r= -j= "
    "-E= --ignore-file=FILE --files --type-list --ignore-case --smart-case --case-sensitive --fixed-strings "
    "--word-regexp --line-regexp --line-number --no-line-number --files-with-matches --files-without-match --count "
    "--count-matches --only-matching --hidden --no-ignore --no-ignore-vcs --invert-match --multiline "
    "--multiline-dotall --pcre2 --json --no-heading --heading --no-messages --null --with-filename --no-filename "
    "--column --trim --stats --unrestricted --text --vimgrep --no-config --quiet --passthru --byte-offset --crlf "
    "--no-ignore-parent --no-ignore-dot --no-ignore-global --one-file-system --glob= --iglob= --type= --type-not= "
    "--after-context= --before-context= --context= --max-count= --max-depth= --max-filesize= --color= --colors= "
    "--replace= --sort= --sortr= --threads= --max-columns= --encoding= --engine="
)
_FD = (
    "-HIuisgFalp0qV1h -L,--follow -e= -t= -d= -E= -c= -j= -S= -o= --ignore-file=FILE --hidden --no-ignore "
    "--unrestricted --case-sensitive --ignore-case --glob --regex --fixed-strings --absolute-path --list-details "
    "--full-path --print0 --no-ignore-vcs --no-ignore-parent --quiet --show-errors --one-file-system --extension= "
    "--type= --max-depth= --min-depth= --exact-depth= --max-results= --exclude= --color= --size= --changed-within= "
    "--changed-before= --owner="
)
_TREE = (
    "-adfilpsugDFhQNqxrtcnCAJXSUv -L= -P= -I= --gitfile=FILE --infofile=FILE --dirsfirst --filesfirst --noreport "
    "--gitignore --du --prune --si --inodes --device --ignore-case --matchdirs --metafirst --charset= --filelimit= "
    "--sort= --timefmt="
)
_READELF = (
    "-ahlSgtsCenrudVADLzcIvWTH -x= -R= -p= -U= --all --file-header --program-headers --segments --sections "
    "--section-headers --section-groups --section-details --symbols --syms --dyn-syms --lto-syms --headers --notes "
    "--relocs --unwind --dynamic --version-info --arch-specific --use-dynamic --archive-index --hex-dump= "
    "--string-dump= --relocated-dump= --decompress --histogram --wide --demangle=? --no-demangle --silent-truncation"
)
_PS = (
    f"{_DIGITS} -AadeNcfFjlMPyHwLmTVZxr -C= -G= -g= -O= -o= -p= -q= -s= -t= -U= -u= --deselect --Group= --group= "
    "--pid= --ppid= --quick-pid= --sid= --tty= --User= --user= --context --format= --cols= --columns= "
    "--cumulative --forest --headers --heading --lines= --no-headers --no-heading --rows= --sort= --width= --info"
)

READING_PROGRAMS: dict[str, ReadingProgram] = {
    **{name: ReadingProgram(_gnu(options, only_reads=True)) for name, options in _ONLY_READING.items()},
    **dict.fromkeys(
        _names(
            "echo true false : sleep seq basename dirname expr tr whoami uname arch nproc tty logname command which "
            "type printenv pwd free factor numfmt locale getconf cal exit break continue times"
        ),
        ReadingProgram(paths=False),
    ),
    "id": ReadingProgram(
        _gnu("-agGnruzZ --context --group --groups --name --real --user --zero", only_reads=True),
        paths=False,
        check="account",
    ),
    "groups": ReadingProgram(_gnu("", only_reads=True), paths=False, check="account"),
    "who": ReadingProgram(
        _gnu(
            "-abdHlmpqrstTwu --all --boot --dead --heading --ips --login --lookup --process --count --runlevel --short "
            "--time --mesg --users --message --writable",
            only_reads=True,
        ),
        check="sessions",
    ),
    "users": ReadingProgram(_gnu("", only_reads=True), check="sessions"),
    "whereis": ReadingProgram(_own("-bmsufglhV -B -M -S"), check="whereis"),
    "ps": ReadingProgram(_gnu(_PS, only_reads=True), paths=False, check="ps"),
    **dict.fromkeys(
        _names("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum"),
        ReadingProgram(_gnu(_CHECKSUM, only_reads=True), listing=("-c",)),
    ),
    **dict.fromkeys(
        ("ls", "dir", "vdir"),
        ReadingProgram(_gnu(_LS, only_reads=True), follows=("-L",), recursive_options=("-R",)),
    ),
    "du": ReadingProgram(_gnu(_DU, only_reads=True), follows=("-L",), is_recursive=True),
    "readelf": ReadingProgram(_gnu(_READELF, only_reads=True), check="response_file"),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep"),
        ReadingProgram(
            _gnu(_GREP, only_reads=True),
            skipped=1,
            instead=("-e", "-f"),
            recursive_options=("-r", "-R", "-d"),
            follows=("-R",),
        ),
    ),
    **dict.fromkeys(("base64", "base32"), ReadingProgram(_gnu("-dDi -w,--wrap= --decode --ignore-garbage"))),
    "printf": ReadingProgram(parse_table("", stops_at_operand=True), paths=False),
    **dict.fromkeys(("test", "[", "[["), ReadingProgram(paths=False, check="test")),
    "diff": ReadingProgram(_gnu(_DIFF), check="diff", is_recursive=True),
    "sort": ReadingProgram(
        _gnu(
            "-bdfghiMnRrVcCmsuz -k,--key= -t,--field-separator= -S,--buffer-size= -o,--output=OUT "
            "--random-source=FILE --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort "
            "--ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort --random-sort --reverse "
            "--version-sort --check=? --merge --stable --unique --zero-terminated --debug --parallel= --batch-size= "
            "--sort="
        ),
    ),
    "uniq": ReadingProgram(
        _gnu(
            f"{_DIGITS} -cdDiuz -f,--skip-fields= -s,--skip-chars= -w,--check-chars= --count --repeated "
            "--all-repeated=? --group=? --ignore-case --unique --zero-terminated"
        ),
        check="uniq",
    ),
    "rg": ReadingProgram(
        _own(_RG), skipped=1, instead=("-e", "-f", "--files", "--type-list"), is_recursive=True, follows=("-L",)
    ),
    **dict.fromkeys(("fd", "fdfind"), ReadingProgram(_own(_FD), skipped=1, is_recursive=True, follows=("-L",))),
    "tree": ReadingProgram(_own(_TREE), is_recursive=True, follows=("-l",)),
    "jq": ReadingProgram(
        _own(
            "-rcnsSeajCMRhV --raw-output --compact-output --null-input --slurp --sort-keys --exit-status "
            "--ascii-output --join-output --tab --color-output --monochrome-output --raw-input --indent= --stream "
            "--seq --unbuffered"
        ),
        skipped=1,
        check="jq",
    ),
    "file": ReadingProgram(
        _gnu(
            "-bchikLlN0rEnv -f,--files-from=LIST -m,--magic-file=FILE -F,--separator= -e,--exclude= -P,--parameter= "
            "--brief --mime --mime-type --mime-encoding --extension --apple --exclude-quiet= --keep-going "
            "--dereference --no-dereference --no-pad --no-buffer --raw --print0"
        )
    ),
    "strings": ReadingProgram(
        _gnu(
            f"{_DIGITS} -adfowvV -n,--bytes= -t,--radix= -e,--encoding= -U,--unicode= -s,--output-separator= --all "
            "--data --print-file-name --include-all-whitespace"
        ),
        check="response_file",
    ),
    "xxd": ReadingProgram(
        _own(
            "-a -autoskip -b -bits -C -capitalize -E -EBCDIC -e -i -include -p -ps -plain -postscript -u -v -version "
            "-h -help -d -c,-cols= -g,-groupsize= -l,-len= -n,-name= -o= -s,-seek= -R=",
            has_words=True,
        ),
        check="one_operand",
    ),
    "date": ReadingProgram(
        _gnu(
            "-uRj -d,--date= -f,--file=FILE -r,--reference=FILE -I=? --utc --universal --rfc-email --rfc-3339= "
            "--iso-8601=? --debug --resolution"
        ),
        paths=False,
        check="date",
    ),
    "hostname": ReadingProgram(
        _gnu("-fsidIAahV --fqdn --long --short --alias --domain --ip-address --all-ip-addresses --all-fqdns"),
        paths=False,
        check="no_operand",
    ),
    "sed": ReadingProgram(
        _gnu(
            "-nErsuzb -e,--expression= -i,--in-place -l,--line-length= --quiet --silent --regexp-extended --separate "
            "--null-data --posix --sandbox --debug --follow-symlinks --unbuffered --binary"
        ),
        skipped=1,
        instead=("-e",),
        check="sed",
    ),
    **dict.fromkeys(
        ("awk", "gawk", "mawk", "nawk"),
        ReadingProgram(_gnu("-F,--field-separator= -v,--assign=", stops_at_operand=True), skipped=1, check="awk"),
    ),
}

VERSION_PROGRAMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("python", "python3", "pip", "pip3", "make", "gcc", "g++", "clang", "cargo", "rustc"), ("--version", "-V")
    ),
    **dict.fromkeys(("node", "npm", "npx", "yarn", "pnpm"), ("--version", "-v")),
    **dict.fromkeys(("uv", "ruff", "mypy", "pytest", "docker", "cmake", "bash", "perl", "ruby", "git"), ("--version",)),
    "go": ("version",),
}
"""Programs that only read when one of these options is their only argument."""
