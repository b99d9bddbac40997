/* audit.c - sluice audit: prove that a run's files are complete and unchanged.
 *
 * Files are read in a child process: HDF5 may crash on damaged ones, and that is a finding, too. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/check.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "hdf5/file.h"
#include "hdf5/images.h"
#include "monitor/audit_json.h"

enum { PROVEN, DAMAGED, UNREADABLE }; /* exit status */
enum { MASTERS_MOST = 64 };	      /* in a folder; an exit status counts them */

struct audit_options {
	bool quiet, json, verbose;
	char source[1024], summary[1024], root[SL_HASH_TEXT];
	uint64_t most;
};

static const struct sl_option options[] = {
	SL_STRING(struct audit_options, source, "",
		  "file with what the front end says it sent (frontend.counts): every "
		  "module-frame of it must have a row"),
	SL_STRING(struct audit_options, summary, "",
		  "summary or result.json of the run, whose root must be the file's; without it "
		  "result.json beside the file, if there is one"),
	SL_STRING(struct audit_options, root, "",
		  "root of the run that was noted elsewhere: 64 hexadecimal digits"),
	SL_U64(struct audit_options, most, 20, 0, 1e15, "findings", "that are named"),
	SL_BOOL(struct audit_options, json, false, "print JSON"),
	SL_BOOL(struct audit_options, quiet, false, "print findings and errors alone"),
	SL_BOOL(struct audit_options, verbose, false, "log what HDF5 says of damaged files, too"),
	SL_OPTION_END,
};

/* ---- which file ---- */

/* Files of runs in a folder: HDF5, and what an audit reads. */
static bool is_master(const char *path)
{
	struct sl_h5 *file;
	struct sl_h5_shape shape;
	bool is;

	if (!sl_h5_is_hdf5(path) || sl_h5_open(path, &file))
		return false;
	is = !sl_h5_describe(file, SL_AUDIT_ID, &shape);
	sl_h5_close(file);
	return is;
}

/* How many; -errno, logged. */
static int find_masters(const char *folder, char (*path)[PATH_MAX])
{
	struct dirent **entry;
	int n = scandir(folder, &entry, NULL, alphasort), found = 0;

	if (n < 0) {
		sl_error("%s: %s", folder, strerror(errno));
		return -ENOENT;
	}
	for (int i = 0; i < n; i++) {
		if (found < MASTERS_MOST &&
		    snprintf(path[found], PATH_MAX, "%s/%s", folder, entry[i]->d_name) < PATH_MAX)
			found += is_master(path[found]);
		free(entry[i]);
	}
	free(entry);
	if (found)
		return found;
	sl_error("%s: the folder has no file of a run with a hash tree", folder);
	return -ENOENT;
}

/* ---- one file ---- */

struct auditing {
	const struct audit_options *options;
	const char *path;
	uint64_t told;
	struct sl_audit_document *document; /* NULL: it is printed for people */
};

static void say(void *arg, const struct sl_finding *finding)
{
	struct auditing *a = arg;

	if (a->document)
		sl_audit_document_add(a->document, finding);
	else if (a->told < a->options->most)
		printf("%s: %s\n", a->path, finding->text);
	a->told++;
}

/* -ENOENT: there is none to compare with. */
static int expected_root(const struct audit_options *o, const char *path, char *from,
			 size_t from_bytes, struct sl_hash *root)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	bool asked = o->summary[0];
	int r;

	if (o->root[0]) {
		snprintf(from, from_bytes, "--root");
		r = sl_hash_read(o->root, root);
		if (r)
			sl_error("--root: takes the 64 hexadecimal digits of a root");
		return r;
	}
	if (asked)
		snprintf(from, from_bytes, "%s", o->summary);
	else
		snprintf(from, from_bytes, "%.*sresult.json", slash ? (int)(slash + 1 - path) : 0,
			 path);
	r = sl_audit_summary_root(from, name, root);
	if (r == -ENOENT && !asked)
		return r;
	if (r) {
		sl_error("%s: %s", from,
			 r == -ENOENT	 ? "has no audit_root of this file, or is missing"
			 : r == -EBADMSG ? "is no summary of a run"
					 : strerror(-r));
		return -EINVAL;
	}
	return 0;
}

static int read_counts(const char *path, struct sl_counts *counts)
{
	FILE *file = fopen(path, "r");
	char why[256] = "no memory";
	int r = file ? sl_counts_read(file, counts, why, sizeof(why)) : -errno;

	if (file)
		fclose(file);
	if (r)
		sl_error("%s: %s", path, file ? why : strerror(-r));
	return r;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void say_proven(const struct sl_audit_result *r, const char *compared,
		       const struct sl_counts *counts)
{
	printf("  %" PRIu64 " row%s about %" PRIu64 " module-frame%s and %" PRIu64
	       " image%s (%.1f MB of pixels) in %u file%s are as they were written\n",
	       r->rows, plural(r->rows), r->module_frames, plural(r->module_frames), r->images,
	       plural(r->images), (double)r->image_bytes * 1e-6, r->files, plural(r->files));
	printf("  root %s, as the file has it%s%s\n", r->root, compared[0] ? " and " : "",
	       compared);
	if (!r->source_crcs)
		printf("  the source sent no checksums of pixels (link.crc): what is proven is "
		       "that the file is what the receiver wrote\n");
	else
		printf("  %" PRIu64 " checksums of pixels are the source's%s\n", r->source_crcs,
		       r->source_checked ? "; stored raw pixels have them, too" : "");
	printf(r->ledger_closed ? "  the ledger closes: %" PRIu64
				  " module-frames sent, every one has an outcome\n"
	       : !strcmp(r->state, "recovered")
		       ? "  the run was killed and recovered: what came after the last row is not "
			 "known\n"
		       : "  the ledger of the run does not close: what its source sent is not "
			 "known for certain\n",
	       r->ledger_sent);
	if (r->cut[0])
		printf("  it is a part of a run, and what is proven is this part: %s\n", r->cut);
	if (counts)
		printf("  the source counts %" PRIu64 " module-frames: each has one row; %" PRIu64
		       " of its checksums are in the file\n",
		       counts->sent, counts->compared);
}

static void report(struct auditing *a, const struct sl_audit_result *r, const char *compared,
		   const struct sl_counts *counts)
{
	char *text;

	if (a->document) {
		text = sl_audit_document_text(a->document, a->path, r, counts);
		printf("%s\n", text ? text : "{}");
		free(text);
		return;
	}
	if (r->findings > a->options->most)
		printf("%s: %" PRIu64 " more finding%s (--most)\n", a->path,
		       r->findings - a->options->most, plural(r->findings - a->options->most));
	if (r->findings)
		printf("%s: DAMAGED: %" PRIu64 " finding%s; %" PRIu64 " rows and %" PRIu64
		       " images were read\n",
		       a->path, r->findings, plural(r->findings), r->rows, r->images);
	else if (!a->options->quiet)
		printf("%s: proven: every frame is there and unchanged\n", a->path);
	if (!r->findings && !a->options->quiet)
		say_proven(r, compared, counts);
}

static void drop_line(void *arg, enum sl_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

/* In the child. */
static int audit_one(const struct audit_options *o, const char *path, char *reading)
{
	static const struct sl_log_target nowhere = {.line = drop_line};
	struct auditing a = {.options = o, .path = path};
	struct sl_counts counts = {.sent = 0};
	struct sl_audit_result result;
	struct sl_hash expected;
	char from[1100] = "";
	int has_root = expected_root(o, path, from, sizeof(from), &expected);
	struct sl_audit_options to = {.path = path,
				      .counts = o->source[0] ? &counts : NULL,
				      .expected = has_root ? NULL : &expected,
				      .expected_from = from,
				      .say = say,
				      .arg = &a,
				      .reading = reading,
				      .reading_bytes = PATH_MAX,
				      .log = o->verbose ? NULL : &nowhere};
	int r = has_root && has_root != -ENOENT ? has_root : 0;

	if (!r && o->source[0])
		r = read_counts(o->source, &counts);
	if (!r && o->json && !(a.document = sl_audit_document_open(o->most)))
		r = -ENOMEM;
	if (!r)
		r = sl_audit_check(&to, &result);
	if (!r)
		report(&a, &result, has_root ? "" : from, to.counts);
	sl_counts_free(&counts);
	fflush(stdout);
	return r ? UNREADABLE : result.findings ? DAMAGED : PROVEN;
}

/* HDF5 crashed on what it read. */
static int say_crashed(const struct audit_options *o, const char *path, const char *reading)
{
	const char *slash = strrchr(reading, '/');
	struct sl_audit_result result = {.findings = 1};
	struct auditing a = {.options = o, .path = path};
	char text[PATH_MAX + 128];
	const struct sl_finding finding = {.kind = SL_FINDING_FILE_UNREADABLE,
					   .file = slash ? slash + 1 : reading,
					   .text = text};

	snprintf(text, sizeof(text), "%s is damaged: HDF5 crashed while reading it", finding.file);
	a.document = o->json ? sl_audit_document_open(1) : NULL;
	say(&a, &finding);
	report(&a, &result, "", NULL);
	return DAMAGED;
}

static int audit_apart(const struct audit_options *o, const char *path)
{
	char *reading =
		mmap(NULL, PATH_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0, result = UNREADABLE;
	pid_t child;

	if (reading == MAP_FAILED) {
		sl_error("no memory");
		return UNREADABLE;
	}
	fflush(stdout);
	child = fork();
	if (!child)
		_exit(audit_one(o, path, reading));
	if (child < 0 || waitpid(child, &status, 0) != child)
		sl_error("cannot start a process: %s", strerror(errno));
	else if (WIFEXITED(status) && WEXITSTATUS(status) <= UNREADABLE)
		result = WEXITSTATUS(status);
	else
		result = say_crashed(o, path, reading);
	munmap(reading, PATH_MAX);
	return result;
}

/* In a child, too. How many; -errno, logged. */
static int find_apart(const char *folder, char (*path)[PATH_MAX])
{
	int status = 0, n;
	pid_t child = fork();

	if (!child) {
		n = find_masters(folder, path);
		_exit(n < 0 ? 0 : n);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		sl_error("cannot start a process: %s", strerror(errno));
		return -EAGAIN;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status) ? WEXITSTATUS(status) : -ENOENT;
	sl_error("%s: HDF5 crashed while looking for the file of the run: name the file", folder);
	return -EIO;
}

static int audit_all(const struct audit_options *o, const char *folder, char (*path)[PATH_MAX])
{
	int n = find_apart(folder, path), worst = PROVEN;

	if (n < 0)
		return UNREADABLE;
	if (n > 1 && (o->source[0] || o->root[0])) {
		sl_error("%s: has %d files of runs: name the one that --source or --root is of",
			 folder, n);
		return UNREADABLE;
	}
	for (int i = 0; i < n; i++) {
		int one = audit_apart(o, path[i]);

		worst = one > worst ? one : worst;
	}
	return worst;
}

static int audit_folder(const struct audit_options *o, const char *folder)
{
	size_t bytes = (size_t)MASTERS_MOST * PATH_MAX;
	void *paths = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (paths == MAP_FAILED) {
		sl_error("no memory");
		return UNREADABLE;
	}
	r = audit_all(o, folder, paths);
	munmap(paths, bytes);
	return r;
}

int sl_cmd_audit(const struct sl_command *command, int argc, char **argv)
{
	struct audit_options o;
	struct sl_args args;
	struct stat st;
	int r = sl_args_read(command, options, &o, argc, argv, &args);

	if (r)
		return r == 1 ? 0 : UNREADABLE;
	if (args.plains != 1) {
		sl_error("audit takes one file or folder of a run: sluice %s", command->usage);
		return UNREADABLE;
	}
	if (stat(args.plain[0], &st)) {
		sl_error("%s: %s", args.plain[0], strerror(errno));
		return UNREADABLE;
	}
	return S_ISDIR(st.st_mode) ? audit_folder(&o, args.plain[0])
				   : audit_apart(&o, args.plain[0]);
}
