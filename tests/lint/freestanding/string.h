/* string.h - all of the C library that the core of a front end may use. */
#ifndef TESTS_FREESTANDING_STRING_H
#define TESTS_FREESTANDING_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);

#endif
