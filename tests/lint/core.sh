# core.sh - what firmware compiles of this project; read by the scripts beside it, from the root of the source.
roce=$(ls src/roce/*.c | grep -v '_test\.c$')
core="src/core/plan.c src/core/from.c src/frontend/transfer.c src/frontend/block.c src/frontend/descriptor.c
	src/frontend/crc32c.c src/frontend/sender.c"
core_headers="include/sluice/darks.h src/core/plan.h include/sluice/record.h src/core/write.h
	src/frontend/transfer.h src/frontend/block.h src/frontend/descriptor.h src/frontend/crc32c.h src/frontend/sender.h"

# Undefined symbols of the objects in a folder that are neither defined there nor in the list of those allowed.
foreign_symbols() { # NM FOLDER ALLOWED...
	nm=$1
	folder=$2
	shift 2
	"$nm" --format=posix --undefined-only "$folder"/*.o | awk 'NF >= 2 { print $1 }' | LC_ALL=C sort -u >"$folder/needed"
	{
		"$nm" --format=posix --defined-only --extern-only "$folder"/*.o | awk 'NF >= 2 { print $1 }'
		printf '%s\n' "$@"
	} | LC_ALL=C sort -u >"$folder/allowed"
	LC_ALL=C comm -23 "$folder/needed" "$folder/allowed"
}
