/* fault_test.c - disks that write short, fail, or are full: what was on disk before stays whole,
 * and the run can be finished. A program of its own: it replaces pread(), pwrite(), fallocate()
 * and fdatasync() of libc. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "lib/open_files.h"
#include "lib/raw_rig.h"
#include "raw/format.h"

static _Atomic int writes_left = -1; /* until pwrite() fails; -1: it never does */
static _Atomic int write_error = EIO;
static _Atomic int writes_short; /* each is cut off at a third */
static _Atomic int no_fallocate; /* as on NFS */
static _Atomic int no_direct;	 /* O_DIRECT is accepted, and writes are refused */
static _Atomic int sync_error;
static _Atomic int sync_us; /* how long a sync takes, besides */
static _Atomic int read_error;
static _Atomic int reads_interrupted; /* every other one */

/* The flush thread writes indices: a run without one is whole. */
static bool is_an_index(void)
{
	char name[16] = "";

	pthread_getname_np(pthread_self(), name, sizeof(name));
	return !strcmp(name, "raw-flush");
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
	if (no_direct && (fcntl(fd, F_GETFL) & O_DIRECT)) {
		errno = EINVAL;
		return -1;
	}
	if (writes_left >= 0 && bytes >= 4096 && !is_an_index() &&
	    atomic_fetch_sub(&writes_left, 1) <= 0) {
		atomic_fetch_add(&writes_left, 1);
		errno = write_error;
		return -1;
	}
	if (writes_short && bytes >= 3 * RAW_BLOCK)
		bytes = bytes / 3 / RAW_BLOCK * RAW_BLOCK;
	return syscall(SYS_pwrite64, fd, data, bytes, at);
}

ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
	static _Atomic unsigned reads;

	if (read_error || (reads_interrupted && atomic_fetch_add(&reads, 1) % 2)) {
		errno = read_error ? read_error : EINTR;
		return -1;
	}
	return syscall(SYS_pread64, fd, data, bytes, at);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
	if (no_fallocate) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

int fdatasync(int fd)
{
	if (sync_error) {
		errno = sync_error;
		return -1;
	}
	usleep((useconds_t)sync_us);
	return (int)syscall(SYS_fdatasync, fd);
}

static void open_complete(const struct raw_rig *rig, unsigned chunks)
{
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;

	assert_int_equal(sl_raw_open(rig->path, 0, &r), 0);
	sl_raw_facts(r, &facts);
	assert_int_equal(facts.state, SL_RAW_COMPLETE);
	raw_rig_check(r, 0, chunks);
	sl_raw_close(r);
}

static void write_300(struct raw_rig *rig)
{
	struct sl_raw_writer *w;

	assert_int_equal(sl_raw_create(&rig->options, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 300);
	assert_int_equal(sl_raw_finish(w, "t", 1), 0);
	open_complete(rig, 300);
}

static void test_short_writes_go_on(void **state)
{
	struct raw_rig *rig = *state;

	rig->options.plain = true;
	writes_short = 1;
	write_300(rig);
	writes_short = 0;
}

static void test_reads_that_are_interrupted_go_on_and_others_fail(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_reader *r;

	write_300(rig);
	reads_interrupted = 1;
	open_complete(rig, 300);
	reads_interrupted = 0;
	read_error = EIO;
	capture_begin();
	assert_int_equal(sl_raw_open(rig->path, 0, &r), -EIO);
	read_error = 0; /* what was said is read with pread(), too */
	assert_non_null(strstr(capture_end(), "cannot read at byte"));
}

static void test_refused_o_direct_is_given_up(void **state)
{
	struct raw_rig *rig = *state;

	rig->options.plain = true;
	no_direct = 1;
	write_300(rig);
	no_direct = 0;
}

/* A disk that fails after some writes. What the mark covers is there. */
static void fail_after(struct raw_rig *rig, int writes, unsigned folders)
{
	struct sl_raw_options o = rig->options;
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	char folder[2][256];
	const char *list[] = {folder[0], folder[1]};
	uint64_t durable, n = 0;
	int error = 0, end;

	for (int i = 0; i < 2; i++)
		snprintf(folder[i], sizeof(folder[i]), "%s/disk%d", rig->folder, i);
	o.folder = list;
	o.folders = folders;
	o.plain = true;
	o.file_bytes = 256 << 10;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 30);
	assert_int_equal(sl_raw_flush(w), 0);
	writes_left = writes;
	capture_begin();
	for (n = 30; n < 1000 && !error; n++)
		error = raw_rig_append_one(w, n);
	durable = sl_raw_durable(w);
	writes_left = -1;
	end = sl_raw_finish(w, "t", 1);
	captured = capture_end();
	assert_int_equal(error, -EIO);
	assert_int_equal(end, -EIO);
	assert_true(durable >= 30);
	if (!strstr(captured, "cannot write at byte"))
		fail_msg("%s", captured);

	CAPTURED(-EBADMSG, sl_raw_open(o.path, 0, &r));
	CAPTURED(0, sl_raw_open(o.path, SL_RAW_DAMAGED, &r));
	sl_raw_facts(r, &facts);
	assert_int_equal(facts.state, SL_RAW_COMPLETE);
	assert_true(facts.chunks >= durable && facts.missing > 0);
	assert_int_equal(facts.chunks + facts.missing, n - 1);
	for (uint64_t i = 0; i < durable; i++)
		raw_rig_check_one(r, i, i);
	raw_rig_check_all(r);
	sl_raw_close(r);
}

static void test_a_failing_disk(void **state)
{
	for (int writes = 0; writes < 12; writes += 3) {
		fail_after(*state, writes, 0);
		raw_rig_clean(*state);
	}
	fail_after(*state, 5, 2);
}

static void test_a_failing_sync(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_writer *w;
	uint64_t durable;

	o.flush_ns = 3600000000000;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 30);
	assert_int_equal(sl_raw_flush(w), 0);
	raw_rig_append(w, 30, 30);
	sync_error = EIO;
	CAPTURED(-EIO, sl_raw_flush(w));
	durable = sl_raw_durable(w);
	sync_error = 0;
	assert_int_equal(durable, 30); /* a second sync that goes well proves nothing */
	assert_int_equal(raw_rig_append_one(w, 60), -EIO);
	assert_int_equal(sl_raw_finish(w, NULL, 0), -EIO);
}

/* Through io_uring: a limit of the file size, which writes run into where nothing is allocated. */
static void test_a_limit_of_the_file_size(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	uint64_t n;
	int error = 0, end;

	no_fallocate = 1;
	o.file_bytes = 64 << 20;
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	limit_file_size(1 << 20);
	capture_begin();
	for (n = 0; n < 100000 && !error; n++)
		error = raw_rig_append_one(w, n);
	end = sl_raw_finish(w, "t", 1);
	captured = capture_end();
	limit_file_size(0);
	no_fallocate = 0;
	assert_true(error == -EFBIG || error == -EIO);
	assert_int_equal(end, error);
	CAPTURED(0, sl_raw_open(o.path, SL_RAW_DAMAGED, &r));
	assert_true(sl_raw_entry(r, 100)->chunk == 100);
	raw_rig_check_all(r);
	sl_raw_close(r);
}

/* The same limit where space is allocated: no chunk is accepted that could be lost. */
static void test_a_limit_before_it_is_reached(void **state)
{
	struct raw_rig *rig = *state;
	struct sl_raw_options o = rig->options;
	struct sl_raw_writer *w;

	limit_file_size(1 << 20);
	o.file_bytes = 64 << 20; /* files become smaller */
	assert_int_equal(sl_raw_create(&o, NULL, 0, &w), 0);
	raw_rig_append(w, 0, 1000);
	assert_int_equal(sl_raw_finish(w, "t", 1), 0);
	limit_file_size(0);
	open_complete(rig, 1000);
}

/* In a child, on a tmpfs of 8 MiB: everything that was accepted is there when the disk is full;
 * with a file removed, more goes in. */
static int fill_disk(const char *folder)
{
	char path[300], ballast[300];
	struct sl_raw_options o = {.path = path,
				   .buffer_bytes = 64 << 10,
				   .buffers = 4,
				   .file_bytes = 1 << 20,
				   .flush_ns = 10000000};
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	uint64_t n = 0, full;
	int fd;

	snprintf(path, sizeof(path), "%s/run.raw", folder);
	snprintf(ballast, sizeof(ballast), "%s/ballast", folder);
	fd = open(ballast, O_WRONLY | O_CREAT, 0600);
	if (syscall(SYS_fallocate, fd, 0, 0, 2 << 20) || sl_raw_create(&o, NULL, 0, &w))
		return 1;
	while (n < 100000 && !raw_rig_append_one(w, n))
		n++;
	full = n;
	if (n < 500 || raw_rig_append_one(w, n) != -ENOSPC || sl_raw_flush(w) ||
	    sl_raw_durable(w) != n)
		return 1;
	unlink(ballast);
	close(fd);
	usleep(300000); /* the refusal is remembered for a while */
	while (n < 100000 && !raw_rig_append_one(w, n))
		n++;
	fprintf(stderr, "%llu, then %llu chunks\n", (unsigned long long)full,
		(unsigned long long)n);
	if (n < full + 200 || sl_raw_finish(w, "t", 1) || sl_raw_open(path, 0, &r))
		return 1;
	raw_rig_check(r, 0, n);
	sl_raw_close(r);
	return 0;
}

/* A rolling container on a full disk gives up its oldest files instead. */
static int roll_on_full_disk(const char *folder)
{
	char path[300];
	struct sl_raw_options o = {.path = path,
				   .buffer_bytes = 64 << 10,
				   .buffers = 4,
				   .file_bytes = 1 << 20,
				   .keep_ns = 1000000000000000};
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;

	snprintf(path, sizeof(path), "%s/run.raw", folder);
	if (sl_raw_create(&o, NULL, 0, &w))
		return 1;
	for (uint64_t n = 0; n < 4000; n++)
		if (raw_rig_append_one(w, n))
			return 1;
	if (sl_raw_finish(w, "t", 1) || sl_raw_open(path, 0, &r))
		return 1;
	sl_raw_facts(r, &facts);
	raw_rig_check_all(r);
	fprintf(stderr, "%llu chunks of 4000 left\n", (unsigned long long)facts.chunks);
	if (facts.chunks < 300 || facts.first + facts.chunks != 4000)
		return 1;
	sl_raw_close(r);
	return 0;
}

/* One of two disks is full: its files make room, those of the other stay. */
static int roll_beside_full_disk(const char *folder, const char *large)
{
	const char *list[] = {folder, large};
	char path[300];
	struct sl_raw_options o = {.path = path,
				   .folder = list,
				   .folders = 2,
				   .buffer_bytes = 64 << 10,
				   .buffers = 4,
				   .file_bytes = 1 << 20,
				   .keep_ns = 1000000000000000};
	struct sl_raw_facts facts;
	struct sl_raw_reader *r;
	struct sl_raw_writer *w;
	unsigned there = 0;

	snprintf(path, sizeof(path), "%s/both.raw", folder);
	if (sl_raw_create(&o, NULL, 0, &w))
		return 1;
	for (uint64_t n = 0; n < 6000; n++)
		if (raw_rig_append_one(w, n))
			return 1;
	if (sl_raw_finish(w, "t", 1) || sl_raw_open(path, 0, &r))
		return 1;
	sl_raw_facts(r, &facts);
	raw_rig_check_all(r);
	for (uint64_t i = 0; i < facts.chunks; i++)
		there += !strncmp(sl_raw_file(r, sl_raw_entry(r, i)->file), large, strlen(large));
	fprintf(stderr, "%llu chunks of 6000 left, %u of them on the large disk\n",
		(unsigned long long)facts.chunks, there);
	sl_raw_close(r);
	return there < 2500 || facts.chunks > 5500;
}

static int on_tmpfs(const char *folder)
{
	char large[200];
	int r = fill_disk(folder);

	scratch_remove(folder); /* the mount point itself stays */
	r = r ? r : roll_on_full_disk(folder);
	scratch_remove(folder);
	sync_us = 20000; /* all files are full before the first one is closed */
	r = r ? r : roll_on_full_disk(folder);
	sync_us = 0;
	scratch_remove(folder);
	scratch_make(large, sizeof(large));
	r = r ? r : roll_beside_full_disk(folder, large);
	scratch_remove(large);
	return r;
}

/* Appends fill data files faster than the disk closes them: what is durable grows all the same, and
 * a limited number of files waits to be closed. */
static void test_files_fill_faster_than_they_are_closed(void **state)
{
	enum { MOST_FILES = 80, APPENDS = 100000 };
	struct raw_rig *rig = *state;
	unsigned before = open_files();
	struct sl_raw_writer *w;
	uint64_t n = 0, grew = 0, durable = 0;

	rig->options.file_bytes = 64 << 10;
	rig->options.buffer_bytes = 16 << 10;
	rig->options.flush_ns = 1000000;
	rig->options.keep_ns = 1000000; /* a chunk is 1 ms: closed files are removed at once */
	sync_us = 3000;
	assert_int_equal(sl_raw_create(&rig->options, NULL, 0, &w), 0);
	for (; grew < 10 && n < APPENDS; n++) {
		assert_int_equal(raw_rig_append_one(w, n), 0);
		assert_true(open_files() < before + MOST_FILES);
		grew += sl_raw_durable(w) != durable;
		durable = sl_raw_durable(w);
	}
	assert_true(n < APPENDS);
	sync_us = 0;
	assert_int_equal(sl_raw_finish(w, "t", 1), 0);
}

static void test_a_full_disk(void **state)
{
	struct raw_rig *rig = *state;
	int status = run_on_tmpfs(rig->folder, "8m");

	if (status == TESTING_NOT_ALLOWED)
		skip();
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_short_writes_go_on),
		RIG_TEST(test_reads_that_are_interrupted_go_on_and_others_fail),
		RIG_TEST(test_refused_o_direct_is_given_up),
		RIG_TEST(test_a_failing_disk),
		RIG_TEST(test_a_failing_sync),
		RIG_TEST(test_a_limit_of_the_file_size),
		RIG_TEST(test_a_limit_before_it_is_reached),
		RIG_TEST(test_files_fill_faster_than_they_are_closed),
		RIG_TEST(test_a_full_disk),
	};

	tmpfs_child(argc, argv, on_tmpfs);
	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
