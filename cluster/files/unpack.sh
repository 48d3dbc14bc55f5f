# Unpacks an archive in the folder $1, for the sh of any image. Standard input has
# the names of the archive's folders, an empty line, and the archive.
LC_ALL=C
export LC_ALL
unset TAR_OPTIONS

# Ends with a code, and reads what there is first: a cluster does not tell the end of
# a program that leaves more of its input than a pipe holds.
leave() {
	cat >/dev/null 2>&1 || while read -r line; do :; done
	exit "$1"
}

command -v tar >/dev/null 2>&1 || leave 70
[ -d "$1" ] || mkdir -p -- "$1" || leave 71
cd -- "$1" || leave 71

# A link in the place of a folder would lead out.
name= listed=
while IFS= read -r line; do
	case $line in
	'')
		listed=yes
		break
		;;
	+*)
		name=$name${line#+}'
'
		;;
	*)
		name=$name${line#=}
		if [ -L "./$name" ]; then
			printf '%s' "$name"
			leave 72
		fi
		name=
		;;
	esac
done
[ "$listed" ] || exit 73

unpack() {
	tar -xpf -
	leave $?
}

# dd tells how much arrived: tar takes an archive that ends too early.
if dd ibs=65536 obs=10240 count=0 </dev/null >/dev/null 2>&1; then
	{ dd ibs=65536 obs=10240 2>&3 | unpack; } 3>&1
else
	echo uncounted
	unpack
fi
