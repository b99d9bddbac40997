/* master.c - the account of a whole run, read. */
#include "audit/master.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/outcome.h>

#include "base/log.h"

#define LEDGER "/entry/sluice/ledger"

enum { FILES_MOST = 1 << 24, LEAVES = 512 };

static int wrong(const struct sl_master *m, const char *what)
{
	sl_error("%s%s: %s: it cannot be audited", m->folder, m->name, what);
	return -EBADMSG;
}

static int read_u64(struct sl_master *m, const char *path, uint64_t *value)
{
	return sl_h5_read(m->file_handle, path, SL_H5_U64, value, sizeof(*value));
}

static int split_path(struct sl_master *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t folder = slash ? (size_t)(slash + 1 - path) : 0;

	if (folder >= sizeof(m->folder) || strlen(path + folder) >= sizeof(m->name)) {
		sl_error("%s: the name is too long", path);
		return -ENAMETOOLONG;
	}
	memcpy(m->folder, path, folder);
	m->folder[folder] = 0;
	strcpy(m->name, path + folder);
	return 0;
}

static int read_whole(struct sl_master *m)
{
	struct sl_h5 *f = m->file_handle;

	if (sl_h5_read_text(f, "/entry/sluice/state", 0, m->state, sizeof(m->state)))
		return wrong(m, "it is no file of a run: /entry/sluice/state is missing");
	if (sl_h5_read_text(f, "/entry/sluice/cut", 0, m->cut, sizeof(m->cut)))
		m->cut[0] = 0;
	if (!strcmp(m->state, "writing")) {
		sl_error("%s%s: the run is writing it, or was killed: wait for its end, or run "
			 "'sluice recover %s%s' first",
			 m->folder, m->name, m->folder, m->name);
		return -EBUSY;
	}
	if (sl_h5_read_text(f, SL_AUDIT_ID, 0, m->run_id, sizeof(m->run_id)))
		return wrong(m, "it has no hash tree: it was written with audit: false, or by an "
				"earlier version");
	if (sl_h5_read_text(f, SL_AUDIT_ROOT, 0, m->root, sizeof(m->root)) ||
	    read_u64(m, SL_AUDIT_ROWS, &m->rows))
		return wrong(m, "the root of its hash tree is missing");
	return 0;
}

/* A name in the master's own folder, and nothing else. */
static bool is_plain(const char *name)
{
	return name[0] && !strchr(name, '/') && strcmp(name, "..") != 0 && strcmp(name, ".") != 0;
}

static int read_numbers(struct sl_master *m, const char *path, uint64_t *numbers)
{
	return sl_h5_read(m->file_handle, path, SL_H5_U64, numbers, m->files * sizeof(*numbers));
}

static int read_columns(struct sl_master *m, uint64_t *numbers, struct sl_hash *roots)
{
	int r = sl_h5_read(m->file_handle, SL_AUDIT_FILE_ROOT, SL_H5_U8, roots,
			   m->files * sizeof(*roots));

	for (uint32_t i = 0; i < m->files && !r; i++)
		m->file[i].root = roots[i];
	r = r ? r : read_numbers(m, SL_AUDIT_FILE_ROWS, numbers);
	for (uint32_t i = 0; i < m->files && !r; i++)
		m->file[i].rows = numbers[i];
	r = r ? r : read_numbers(m, SL_AUDIT_FILE_FIRST_SEQUENCE, numbers);
	for (uint32_t i = 0; i < m->files && !r; i++)
		m->file[i].first_sequence = numbers[i];
	r = r ? r : read_numbers(m, SL_AUDIT_FILE_FIRST_IMAGE, numbers);
	for (uint32_t i = 0; i < m->files && !r; i++)
		m->file[i].first_image = numbers[i];
	for (uint32_t i = 0; i < m->files && !r; i++) {
		r = sl_h5_read_text(m->file_handle, SL_AUDIT_FILE_NAME, i, m->file[i].name,
				    sizeof(m->file[i].name));
		if (!r && !is_plain(m->file[i].name))
			r = -EBADMSG;
	}
	return r;
}

static int read_files(struct sl_master *m)
{
	struct sl_h5_shape shape;
	uint64_t *numbers;
	struct sl_hash *roots;
	int r = sl_h5_describe(m->file_handle, SL_AUDIT_FILE_ROWS, &shape);

	m->rolled = !r;
	if (!r && (shape.rank != 1 || !shape.dim[0] || shape.dim[0] > FILES_MOST))
		return wrong(m, "its list of data files is damaged");
	m->files = m->rolled ? (uint32_t)shape.dim[0] : 1;
	m->file = calloc(m->files, sizeof(*m->file));
	if (!m->file)
		return -ENOMEM;
	if (!m->rolled) {
		snprintf(m->file[0].name, sizeof(m->file[0].name), "%s", m->name);
		m->file[0].rows = m->rows;
		return sl_hash_read(m->root, &m->file[0].root) ? wrong(m, "its root is damaged")
							       : 0;
	}
	numbers = calloc(m->files, sizeof(*numbers));
	roots = calloc(m->files, sizeof(*roots));
	r = numbers && roots ? read_columns(m, numbers, roots) : -ENOMEM;
	free(roots);
	free(numbers);
	return r && r != -ENOMEM ? wrong(m, "its list of data files is damaged") : r;
}

static int read_ledger(struct sl_master *m)
{
	struct sl_h5_shape shape;
	uint64_t *outcomes;
	uint8_t closed = 0;
	int r = sl_h5_describe(m->file_handle, LEDGER "/outcomes", &shape);

	if (r || shape.rank != 2 || !shape.dim[0] || shape.dim[0] > SL_LEAF_MODULES ||
	    shape.dim[1] > 64)
		return wrong(m, "its ledger is missing or damaged");
	m->modules = (uint32_t)shape.dim[0];
	outcomes = calloc(shape.dim[0] * shape.dim[1] + 1, sizeof(*outcomes));
	if (!outcomes)
		return -ENOMEM;
	r = sl_h5_read(m->file_handle, LEDGER "/outcomes", SL_H5_U64, outcomes,
		       shape.dim[0] * shape.dim[1] * sizeof(*outcomes));
	for (uint64_t i = 0; i < shape.dim[0] * shape.dim[1] && !r; i++)
		if (i % shape.dim[1] != SL_NO_OUTCOME)
			m->settled[i / shape.dim[1]] += outcomes[i];
	free(outcomes);
	if (!r)
		r = sl_h5_read(m->file_handle, LEDGER "/sent", SL_H5_U64, m->sent,
			       m->modules * sizeof(*m->sent));
	if (!r)
		r = sl_h5_read(m->file_handle, LEDGER "/closed", SL_H5_U8, &closed, 1);
	if (!r)
		r = read_u64(m, "/entry/sluice/frames_refused", &m->refused);
	m->ledger_closed = closed;
	return r ? wrong(m, "its ledger is missing or damaged") : 0;
}

int sl_master_open(struct sl_master *master, const char *path)
{
	int r;

	*master = (struct sl_master){.files = 0};
	r = split_path(master, path);
	if (!r)
		r = sl_h5_open(path, &master->file_handle);
	if (r)
		return r;
	r = read_whole(master);
	if (!r)
		r = read_files(master);
	if (!r)
		r = read_ledger(master);
	if (r)
		sl_master_close(master);
	return r;
}

void sl_master_close(struct sl_master *master)
{
	free(master->file);
	if (master->file_handle)
		sl_h5_close(master->file_handle);
	*master = (struct sl_master){.files = 0};
}

int sl_master_shown(struct sl_master *master, struct sl_hash *root)
{
	struct sl_hash leaf[LEAVES];
	struct sl_tree tree = {0};
	struct sl_h5_shape shape;
	int r = sl_h5_describe(master->file_handle, SL_AUDIT_LEAF, &shape);

	if (!r && (shape.rank != 2 || shape.dim[1] != SL_HASH_BYTES))
		r = -EBADMSG;
	for (uint64_t row = 0, n; !r && row < shape.dim[0]; row += n) {
		n = shape.dim[0] - row < LEAVES ? shape.dim[0] - row : LEAVES;
		r = sl_h5_read_rows(master->file_handle, SL_AUDIT_LEAF, row, n, SL_H5_U8, leaf,
				    n * SL_HASH_BYTES);
		for (uint64_t i = 0; i < n && !r; i++)
			sl_tree_add(&tree, &leaf[i]);
	}
	if (!r)
		*root = sl_tree_root(&tree);
	return r;
}
