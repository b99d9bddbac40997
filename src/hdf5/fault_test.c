/* fault_test.c - calls of HDF5 that fail where no file makes them fail: the error is returned and
 * logged. A program of its own: it replaces H5Aclose() and H5Dget_create_plist(). */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "hdf5/file.h"
#include "hdf5/images.h"
#include "hdf5/testing.h"
#include "lib/capture.h"

enum { ROWS = 6, COLUMNS = 10 };

static char scratch[256], path[512];
static bool close_fails, properties_fail;
static unsigned closed;

/* The attribute is closed all the same: HDF5 would keep the file open for it. */
herr_t H5Aclose(hid_t attribute)
{
	herr_t (*real)(hid_t) = (herr_t(*)(hid_t))dlsym(RTLD_NEXT, "H5Aclose");
	herr_t r;

	assert_non_null(real);
	r = real(attribute);
	closed++;
	return close_fails ? -1 : r;
}

hid_t H5Dget_create_plist(hid_t dataset)
{
	hid_t (*real)(hid_t) = (hid_t(*)(hid_t))dlsym(RTLD_NEXT, "H5Dget_create_plist");

	assert_non_null(real);
	return properties_fail ? H5I_INVALID_HID : real(dataset);
}

static int setup(void **state)
{
	scratch_make(scratch, sizeof(scratch));
	snprintf(path, sizeof(path), "%s/a.h5", scratch);
	return 0;
}

static int teardown(void **state)
{
	close_fails = properties_fail = false;
	scratch_remove(scratch);
	return 0;
}

static struct sl_h5 *begun(void)
{
	const struct sl_h5_shape shape = {SL_H5_U16, 3, {1, ROWS, COLUMNS}};
	static const uint16_t image[ROWS * COLUMNS];
	struct sl_h5 *file = NULL;

	assert_int_equal(sl_h5_create(path, &file), 0);
	assert_int_equal(sl_h5_write(file, "/x", &shape, image), 0);
	return file;
}

/* HDF5 may write what it has buffered of an attribute when it is closed. */
static void an_attribute_that_cannot_be_closed_is_an_error_of_the_file(void **state)
{
	struct sl_h5 *file = begun();
	const double value = 1.5;
	const char *said;
	int r;

	closed = 0;
	assert_int_equal(sl_h5_attribute(file, "/x", "good", SL_H5_F64, 0, &value), 0);
	assert_int_equal(closed, 1);
	close_fails = true;
	capture_begin();
	r = sl_h5_attribute(file, "/x", "bad", SL_H5_F64, 0, &value);
	said = capture_end();
	assert_int_equal(closed, 2);
	assert_true(r < 0);
	assert_int_equal(sl_h5_status(file), r);
	assert_non_null(strstr(said, "write an attribute of /x"));
	sl_h5_abandon(file);
}

static void images_whose_properties_cannot_be_read_are_not_opened(void **state)
{
	struct sl_h5_images *images;
	struct sl_h5_shape shape;
	const char *said;
	int r;

	assert_int_equal(sl_h5_finish(begun()), 0);
	assert_int_equal(sl_h5_images_open(path, "/x", &images, &shape), 0);
	sl_h5_images_close(images);
	properties_fail = true;
	capture_begin();
	r = sl_h5_images_open(path, "/x", &images, &shape);
	said = capture_end();
	assert_true(r < 0);
	assert_non_null(strstr(said, "a.h5: cannot read /x"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_attribute_that_cannot_be_closed_is_an_error_of_the_file),
		CASE(images_whose_properties_cannot_be_read_are_not_opened),
	};

	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
