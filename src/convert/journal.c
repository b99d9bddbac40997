/* journal.c - the progress of a conversion, in a file. */
#include "convert/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc.h"
#include "base/file/part_file.h"
#include "base/log.h"
#include "hdf5/rolled/rolled.h"

#define CLOSING	 "closing\n"
#define FILE_SET "file_set "

enum { READ_BYTES = 1 << 20, JOURNAL_MOST = 64 << 20, LINE_BYTES = 128 };

static int failed(const struct sl_journal *j, const char *what)
{
	int err = errno ? -errno : -EIO;

	sl_error("%s: cannot %s: %s", j->path, what, strerror(-err));
	return err;
}

/* ---- data files ---- */

static int data_path(const struct sl_journal *j, uint32_t number, char *path, size_t bytes)
{
	const char *slash = strrchr(j->out, '/');
	size_t folder = slash ? (size_t)(slash - j->out) + 1 : 0;

	if (folder >= bytes)
		return -ENAMETOOLONG;
	memcpy(path, j->out, folder);
	return sl_h5_data_name(j->out, number, path + folder, bytes - folder);
}

static int measure(int fd, struct sl_journal_file *file)
{
	uint8_t *buffer = malloc(READ_BYTES);
	ssize_t n;

	if (!buffer)
		return -ENOMEM;
	*file = (struct sl_journal_file){.entries = file->entries};
	while ((n = read(fd, buffer, READ_BYTES)) > 0) {
		file->crc = sl_crc32c(file->crc, buffer, (size_t)n);
		file->bytes += (uint64_t)n;
	}
	free(buffer);
	return n < 0 ? -errno : 0;
}

/* Its size and checksum, as it is now. Not logged. */
static int measure_data(const struct sl_journal *j, uint32_t number, struct sl_journal_file *file)
{
	char path[PATH_MAX];
	int r = data_path(j, number, path, sizeof(path)), fd;

	if (r)
		return r;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = measure(fd, file);
	close(fd);
	return r;
}

/* ---- the file ---- */

/* The file of this user alone, as an earlier conversion left it, or new. */
static int open_locked(struct sl_journal *j, long long *bytes)
{
	j->fd = sl_own_file_open(j->path, bytes);
	if (j->fd == -EBUSY)
		sl_error("%s: another sluice convert is at work on it", j->out);
	return j->fd < 0 ? j->fd : 0;
}

static char *read_text(struct sl_journal *j)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(j->fd, &st) || !S_ISREG(st.st_mode) || st.st_size > JOURNAL_MOST)
		return NULL;
	text = calloc(1, (size_t)st.st_size + 1);
	n = text ? pread(j->fd, text, (size_t)st.st_size, 0) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

static int remember(struct sl_journal *j, const struct sl_journal_file *file)
{
	struct sl_journal_file *more = realloc(j->file, (j->files + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	j->file = more;
	more[j->files++] = *file;
	return 0;
}

/* Lines of data files that are as they were written; those behind the first that is not are
 * forgotten. *used: bytes of the lines that stay. */
static int read_files(struct sl_journal *j, const char *text, size_t *used)
{
	const char *line = text, *end;
	int r = 0;

	for (; (end = strchr(line, '\n')) && !r; line = end + 1, *used = (size_t)(line - text)) {
		struct sl_journal_file said, found = {0};
		unsigned number;

		if (!strncmp(line, CLOSING, strlen(CLOSING))) {
			j->closing = true;
			return 0;
		}
		if (sscanf(line, "file %u %" SCNu64 " %" SCNu64 " %" SCNx32, &number, &said.entries,
			   &said.bytes, &said.crc) != 4 ||
		    number != j->files + 1 ||
		    (j->files && said.entries <= j->file[j->files - 1].entries))
			return 0;
		if (measure_data(j, number, &found) || found.bytes != said.bytes ||
		    found.crc != said.crc) {
			sl_warn("%s: data file %u is not there, or not as it was written: it and "
				"those behind it are written again",
				j->out, number);
			return 0;
		}
		r = remember(j, &said);
	}
	return r;
}

static int write_all(struct sl_journal *j, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(j->fd, text, bytes);

		if (n <= 0)
			return failed(j, "write it");
		text += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int write_file(struct sl_journal *j, uint32_t number, const struct sl_journal_file *file)
{
	char line[LINE_BYTES];
	int n = snprintf(line, sizeof(line), "file %u %" PRIu64 " %" PRIu64 " %08" PRIx32 "\n",
			 number, file->entries, file->bytes, file->crc);

	return write_all(j, line, (size_t)n);
}

static int cut_at(struct sl_journal *j, size_t bytes)
{
	return ftruncate(j->fd, (off_t)bytes) || lseek(j->fd, (off_t)bytes, SEEK_SET) < 0
		       ? failed(j, "cut it")
		       : 0;
}

static int begin(struct sl_journal *j, const char *what)
{
	char line[LINE_BYTES];
	int r = sl_h5_file_set_make(j->file_set);

	if (!r)
		r = cut_at(j, 0);
	if (!r)
		r = write_all(j, what, strlen(what));
	j->begun_ns = sl_clock_unix_ns();
	snprintf(line, sizeof(line), FILE_SET "%s %" PRIu64 "\n", j->file_set, j->begun_ns);
	if (!r)
		r = write_all(j, line, strlen(line));
	if (!r && fsync(j->fd))
		r = failed(j, "sync it");
	return r;
}

/* Nothing was written by a conversion that did not come to its second line. */
static int resume(struct sl_journal *j, const char *text, const char *what)
{
	const char *line = text + strlen(what);
	size_t used = 0, digits = sizeof(j->file_set) - 1;
	char *end;
	int r;

	if (strncmp(line, FILE_SET, strlen(FILE_SET)))
		return begin(j, what);
	line += strlen(FILE_SET);
	if (strspn(line, "0123456789abcdef") != digits || line[digits] != ' ')
		return begin(j, what);
	memcpy(j->file_set, line, digits);
	j->begun_ns = strtoull(line + digits, &end, 10);
	if (*end != '\n')
		return begin(j, what);
	line = end + 1;
	r = read_files(j, line, &used);
	j->resumes = true;
	return r ? r : cut_at(j, (size_t)(line - text) + used);
}

/* Not what an earlier conversion has left, which may have been interrupted in its first line. */
static bool is_foreign(const char *text, long long bytes)
{
	size_t length = strlen(text), most = strlen(SL_JOURNAL_HEAD);

	return length != (size_t)bytes ||
	       strncmp(text, SL_JOURNAL_HEAD, length < most ? length : most) != 0;
}

static int refuse_foreign(const struct sl_journal *j)
{
	sl_error("%s: is there and was not written by sluice convert; move it away, or choose "
		 "another path",
		 j->path);
	return -EEXIST;
}

static int refuse_other(const struct sl_journal *j)
{
	sl_error("%s: an earlier conversion to it was not finished, and it was one of another raw "
		 "file or with other options. To do: give the same ones, another name, or "
		 "--overwrite",
		 j->out);
	return -EEXIST;
}

int sl_journal_open(const char *out, const char *what, bool overwrite, struct sl_journal *j)
{
	long long bytes = 0;
	char *text;
	int r;

	*j = (struct sl_journal){.out = out, .fd = -1};
	if (asprintf(&j->path, "%s.convert", out) < 0) {
		j->path = NULL;
		return -ENOMEM;
	}
	r = sl_make_folders(out);
	r = r ? r : open_locked(j, &bytes);
	text = r ? NULL : read_text(j);
	if (!r && !text)
		r = failed(j, "read it");
	if (!r && is_foreign(text, bytes))
		r = refuse_foreign(j);
	else if (!r && !strncmp(text, what, strlen(what)))
		r = resume(j, text, what);
	else if (!r && bytes && !overwrite)
		r = refuse_other(j);
	else if (!r)
		r = begin(j, what);
	free(text);
	return r;
}

int sl_journal_add(struct sl_journal *j, uint64_t entries)
{
	struct sl_journal_file file = {.entries = entries};
	int r = measure_data(j, j->files + 1, &file);

	if (r) {
		sl_error("%s: cannot read data file %u back: %s", j->out, j->files + 1,
			 strerror(-r));
		return r;
	}
	r = remember(j, &file);
	if (!r)
		r = write_file(j, j->files, &file);
	if (!r && fdatasync(j->fd))
		r = failed(j, "sync it");
	return r;
}

int sl_journal_closing(struct sl_journal *j)
{
	int r = write_all(j, CLOSING, strlen(CLOSING));

	return !r && fdatasync(j->fd) ? failed(j, "sync it") : r;
}

void sl_journal_close(struct sl_journal *j, bool done)
{
	if (done)
		sl_own_file_remove(j->fd, j->path);
	if (j->fd >= 0)
		close(j->fd);
	free(j->path);
	free(j->file);
	*j = (struct sl_journal){.fd = -1};
}
