/* errors.h - an error out of a logged line: "FILE:LINE: message; hint". */
#ifndef SL_SESSION_ERRORS_H
#define SL_SESSION_ERRORS_H

#include <sluice/sluice.h>

/* Sets message, where and hint; the code is the caller's. */
void sl_error_from_line(const char *line, struct sl_error *error);

/* The code of -errno where that alone says it; else the other one. */
enum sl_error_code sl_error_code_of(int err, enum sl_error_code otherwise);

#endif
