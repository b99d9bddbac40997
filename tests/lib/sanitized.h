/* sanitized.h - whether this program is built with a sanitizer, by gcc or clang: it is slow then.
 * */
#ifndef TESTS_LIB_SANITIZED_H
#define TESTS_LIB_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

#endif
