/* secret.h - numbers that nobody can guess: keys, queue numbers, first PSNs. */
#ifndef SL_BASE_SECRET_H
#define SL_BASE_SECRET_H

#include <stdint.h>

/* From the kernel's generator; without it there is no safe fallback, and the program ends. */
uint32_t sl_secret_u32(void);

#endif
