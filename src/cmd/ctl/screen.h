/* screen.h - a terminal that is used as a screen: its other buffer, without echo, and everything as
 * it was at the end, whatever ends the program (but for SIGKILL).
 *
 * Model:     one screen in a process. Signals that end the program, and SIGTSTP, give the terminal
 *            back before they have their effect; SIGCONT takes it again.
 * Threads:   one at a time; handlers use atomics, write(2) and tcsetattr(3) alone. */
#ifndef SL_CMD_CTL_SCREEN_H
#define SL_CMD_CTL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

enum sl_key { SL_KEY_UP = 256, SL_KEY_DOWN };

/* Standard output is a terminal that knows ANSI sequences. */
bool sl_screen_is_there(void);
/* It has characters beyond ASCII, by the locale's name; it is to have colours (NO_COLOR). */
bool sl_screen_has_utf8(void);
bool sl_screen_has_colours(void);

int sl_screen_open(void);
void sl_screen_close(void);
void sl_screen_size(unsigned *columns, unsigned *rows);

/* Until a key, a descriptor that can be read, another size, or the time is over (-1: never).
 * Returns the key, 0: something else; -EPIPE: the terminal is gone. *resized: what is on the screen
 * is not known any more. */
int sl_screen_wait(int fd, int timeout_ms, bool *resized);
/* -errno */
int sl_screen_write(const char *bytes, size_t n);

#endif
