/* images_test.c - images out of datasets as others lay them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "codec/pack.h"
#include "hdf5/images.h"
#include "hdf5/testing.h"

enum { ROWS = 6, COLUMNS = 10, PIXELS = ROWS * COLUMNS };

static char scratch[256], path[512], other[512];
static uint16_t data[8][PIXELS], got[2 * PIXELS];

static int setup(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/a.h5", scratch);
	snprintf(other, sizeof(other), "%s/b.h5", scratch);
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < PIXELS; k++)
			data[i][k] = (uint16_t)(1000 * i + k);
	return 0;
}

static int teardown(void **state)
{
	scratch_remove(scratch);
	return 0;
}

static hid_t add(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dim,
		 hid_t properties)
{
	hid_t space = H5Screate_simple(rank, dim, NULL);
	hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);

	assert_true(dataset >= 0);
	H5Sclose(space);
	return dataset;
}

/* As most: [8][ROWS][COLUMNS], with these properties. */
static void make(const char *file_path, const char *name, hid_t properties)
{
	hid_t file = H5Fcreate(file_path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), dataset;
	const hsize_t dim[] = {8, ROWS, COLUMNS};

	dataset = add(file, name, H5T_STD_U16BE, 3, dim, properties);
	assert_true(H5Dwrite(dataset, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	H5Dclose(dataset);
	H5Fclose(file);
}

static void all_there(const char *file_path, const char *name)
{
	struct sl_h5_images *images;
	struct sl_h5_shape shape;

	assert_int_equal(sl_h5_images_open(file_path, name, &images, &shape), 0);
	assert_int_equal(shape.rank, 3);
	assert_int_equal(shape.dim[0], 8);
	assert_int_equal(shape.type, SL_H5_U16);
	for (unsigned i = 8; i-- > 0;) { /* in no special order */
		memset(got, 0, sizeof(got));
		assert_int_equal(sl_h5_images_read(images, i, got, sizeof(data[0])), 0);
		assert_memory_equal(got, data[i], sizeof(data[0]));
	}
	assert_int_equal(sl_h5_images_read(images, 8, got, sizeof(data[0])), -EINVAL);
	assert_int_equal(sl_h5_images_read(images, 0, got, sizeof(data[0]) - 2), -EINVAL);
	sl_h5_images_close(images);
}

static void layouts_of_all_kinds_are_read(void **state)
{
	static const hsize_t chunks[][3] = {{1, ROWS, COLUMNS}, {3, 4, 4}, {8, ROWS, COLUMNS}};
	hid_t properties;

	make(path, "x", H5P_DEFAULT);
	all_there(path, "/x");
	for (size_t i = 0; i < 3; i++) {
		properties = H5Pcreate(H5P_DATASET_CREATE);
		H5Pset_chunk(properties, 3, chunks[i]);
		H5Pset_shuffle(properties);
		H5Pset_deflate(properties, 6);
		make(path, "x", properties);
		H5Pclose(properties);
		all_there(path, "/x");
	}
}

static void one_image_and_modules_are_read(void **state)
{
	const hsize_t one[] = {ROWS, COLUMNS}, modules[] = {4, 2, ROWS, COLUMNS};
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), dataset;
	struct sl_h5_images *images;
	struct sl_h5_shape shape;

	dataset = add(file, "one", H5T_NATIVE_UINT16, 2, one, H5P_DEFAULT);
	H5Dwrite(dataset, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, data[3]);
	H5Dclose(dataset);
	dataset = add(file, "four", H5T_NATIVE_UINT16, 4, modules, H5P_DEFAULT);
	H5Dwrite(dataset, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
	H5Dclose(dataset);
	H5Fclose(file);

	assert_int_equal(sl_h5_images_open(path, "/one", &images, &shape), 0);
	assert_int_equal(sl_h5_images_read(images, 0, got, sizeof(data[0])), 0);
	assert_memory_equal(got, data[3], sizeof(data[0]));
	assert_int_equal(sl_h5_images_read(images, 1, got, sizeof(data[0])), -EINVAL);
	sl_h5_images_close(images);
	assert_int_equal(sl_h5_images_open(path, "/four", &images, &shape), 0);
	assert_int_equal(shape.dim[1], 2);
	assert_int_equal(sl_h5_images_read(images, 2, got, 2 * sizeof(data[0])), 0);
	assert_memory_equal(got, data[4], 2 * sizeof(data[0]));
	sl_h5_images_close(images);
}

static void links_and_virtual_datasets_are_followed(void **state)
{
	const hsize_t dim[] = {8, ROWS, COLUMNS};
	hid_t file, properties, space;
	struct sl_h5_images *images;
	struct sl_h5_shape shape;
	struct sl_h5 *reading;

	make(other, "x", H5P_DEFAULT);
	file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	H5Lcreate_external("b.h5", "/x", file, "link", H5P_DEFAULT, H5P_DEFAULT);
	properties = H5Pcreate(H5P_DATASET_CREATE);
	space = H5Screate_simple(3, dim, NULL);
	H5Pset_virtual(properties, space, "b.h5", "/x", space);
	H5Dclose(add(file, "virtual", H5T_NATIVE_UINT16, 3, dim, properties));
	H5Sclose(space);
	H5Pclose(properties);
	H5Fclose(file);
	all_there(path, "/link");
	all_there(path, "/virtual");

	/* HDF5 itself would give zeros. */
	remove(other);
	assert_int_equal(sl_h5_images_open(path, "/virtual", &images, &shape), -EINVAL);
	assert_int_equal(sl_h5_images_open(path, "/link", &images, &shape), -ENOENT);
	assert_int_equal(sl_h5_open(path, &reading), 0);
	assert_true(sl_h5_dangles(reading, "/link"));
	assert_false(sl_h5_dangles(reading, "/virtual"));
	assert_false(sl_h5_dangles(reading, "/nothing"));
	sl_h5_close(reading);
}

static size_t as_it_is(unsigned flags, size_t n, const unsigned cd[], size_t bytes,
		       size_t *buffer_bytes, void **buffer)
{
	return bytes;
}

/* HDF5 describes only what it could write, too: let it believe so for a while. */
static void pretend(H5Z_filter_t id)
{
	const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, id, 1, 1, "pretended", NULL, NULL, as_it_is};

	assert_true(H5Zregister(&filter) >= 0);
}

static void what_cannot_be_unpacked_is_refused(void **state)
{
	const hsize_t dim[] = {8, ROWS, COLUMNS}, chunk[] = {1, ROWS, COLUMNS};
	const unsigned cd[] = {0, 4, 2, 0, 4, 3};
	struct sl_h5_images *images;
	struct sl_h5_shape shape;
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), properties;

	pretend(31999);
	pretend(32008);
	properties = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(properties, 3, chunk);
	H5Pset_filter(properties, 31999, H5Z_FLAG_OPTIONAL, 0, NULL);
	H5Dclose(add(file, "unknown", H5T_NATIVE_UINT16, 3, dim, properties));
	H5Pclose(properties);
	properties = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(properties, 3, chunk);
	H5Pset_filter(properties, 32008, H5Z_FLAG_OPTIONAL, 6, cd);
	H5Dclose(add(file, "other", H5T_NATIVE_UINT16, 3, dim, properties));
	H5Pclose(properties);
	H5Fclose(file);
	H5Zunregister(31999);
	assert_int_equal(sl_h5_images_open(path, "/unknown", &images, &shape), -EINVAL);
	assert_int_equal(sl_h5_images_open(path, "/other", &images, &shape), -EINVAL);
}

/* An image in a chunk, as src/codec packs it. */
static void packed_images_are_read(H5Z_filter_t id, enum sl_codec codec, unsigned packing)
{
	const hsize_t dim[] = {8, ROWS, COLUMNS}, chunk[] = {1, ROWS, COLUMNS};
	const unsigned cd[] = {0, 4, 2, 0, packing, 0};
	uint8_t bytes[4 * sizeof(data[0])];
	struct sl_packer packer;
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), properties, dataset;

	pretend(id);
	assert_int_equal(sl_packer_init(&packer, SL_VECTORS_AUTO), 0);
	properties = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(properties, 3, chunk);
	H5Pset_filter(properties, id, H5Z_FLAG_OPTIONAL, id == 32008 ? 6 : 0, cd);
	dataset = add(file, "x", H5T_STD_U16LE, 3, dim, properties);
	for (hsize_t i = 0; i < 8; i++) {
		int64_t size =
			sl_pack(&packer, codec, data[i], sizeof(data[i]), 2, bytes, sizeof(bytes));
		const hsize_t at[] = {i, 0, 0};

		assert_true(size > 0);
		assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, at, (size_t)size, bytes) >= 0);
	}
	H5Dclose(dataset);
	H5Pclose(properties);
	H5Fclose(file);
	sl_packer_fini(&packer);
	all_there(path, "/x");
}

static void images_of_every_codec_are_read(void **state)
{
	packed_images_are_read(32004, SL_CODEC_LZ4, 0);
	packed_images_are_read(32008, SL_CODEC_BSLZ4, 2);
	packed_images_are_read(32008, SL_CODEC_BSZSTD, 3);
}

/* Chunks of bytes that claim to be packed. */
static void chunks_that_lie_are_refused(void **state)
{
	const hsize_t dim[] = {8, ROWS, COLUMNS}, chunk[] = {1, ROWS, COLUMNS};
	const unsigned lz4[] = {0, 4, 2, 0, 2};
	uint8_t bytes[64] = {0};
	struct sl_h5_images *images;
	struct sl_h5_shape shape;
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), properties, dataset;

	pretend(32008);
	properties = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(properties, 3, chunk);
	H5Pset_filter(properties, 32008, H5Z_FLAG_OPTIONAL, 5, lz4);
	dataset = add(file, "x", H5T_NATIVE_UINT16, 3, dim, properties);
	for (hsize_t i = 0; i < 8; i++) {
		const hsize_t at[] = {i, 0, 0};

		/* Two pixels, rather than a chunk of them; more than there is; all ones. */
		bytes[7] = (uint8_t)(i == 0 ? 4 : 120);
		bytes[11] = 32;
		memset(bytes + 12, i == 2 ? 0xff : 0, sizeof(bytes) - 12);
		assert_true(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, at, i == 3 ? 5 : sizeof(bytes),
					   bytes) >= 0);
	}
	H5Dclose(dataset);
	H5Pclose(properties);
	H5Fclose(file);
	assert_int_equal(sl_h5_images_open(path, "/x", &images, &shape), 0);
	for (unsigned i = 0; i < 8; i++)
		assert_true(sl_h5_images_read(images, i, got, sizeof(data[0])) < 0);
	sl_h5_images_close(images);
}

static void shapes_that_are_no_images_are_refused(void **state)
{
	const hsize_t dim[] = {2, 2, 2, 2, 2}, empty[] = {0, ROWS, COLUMNS};
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	struct sl_h5_images *images;
	struct sl_h5_shape shape;
	char names[4][SL_H5_NAME];
	unsigned found;

	H5Dclose(add(file, "line", H5T_NATIVE_UINT16, 1, dim, H5P_DEFAULT));
	H5Dclose(add(file, "five", H5T_NATIVE_UINT16, 5, dim, H5P_DEFAULT));
	H5Dclose(add(file, "empty", H5T_NATIVE_UINT16, 3, empty, H5P_DEFAULT));
	H5Dclose(add(file, "half", H5T_IEEE_F64LE, 3, dim, H5P_DEFAULT));
	H5Gclose(H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	H5Fclose(file);
	assert_int_equal(sl_h5_images_open(path, "/line", &images, &shape), -EINVAL);
	assert_int_equal(sl_h5_images_open(path, "/five", &images, &shape), -EINVAL);
	assert_int_equal(sl_h5_images_open(path, "/empty", &images, &shape), -EINVAL);
	assert_true(sl_h5_images_open(path, "/group", &images, &shape) < 0);
	assert_int_equal(sl_h5_images_open(path, "/nothing", &images, &shape), -ENOENT);
	assert_int_equal(sl_h5_images_find(path, names, 4, &found), 0);
	assert_int_equal(found, 2); /* empty, and half */
	assert_string_equal(names[0], "/empty");
}

static void a_file_is_known_by_its_beginning(void **state)
{
	FILE *file = fopen(other, "w");

	fputs("no HDF5", file);
	fclose(file);
	make(path, "x", H5P_DEFAULT);
	assert_true(sl_h5_is_hdf5(path));
	assert_false(sl_h5_is_hdf5(other));
	assert_false(sl_h5_is_hdf5("/nothing/there"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(layouts_of_all_kinds_are_read),
		CASE(one_image_and_modules_are_read),
		CASE(links_and_virtual_datasets_are_followed),
		CASE(what_cannot_be_unpacked_is_refused),
		CASE(images_of_every_codec_are_read),
		CASE(chunks_that_lie_are_refused),
		CASE(shapes_that_are_no_images_are_refused),
		CASE(a_file_is_known_by_its_beginning),
	};

	return cmocka_run_group_tests_name("images", tests, NULL, NULL);
}
