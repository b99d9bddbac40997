/* signals.h - SIGINT and SIGTERM ask for an orderly end; a second one, later, does not ask. SIGUSR1
 * tells a receiver that no more front ends will come. */
#ifndef SL_CMD_SIGNALS_H
#define SL_CMD_SIGNALS_H

/* Which signal came first; 0: none yet. */
extern _Atomic int sl_signal;

/* Not 0: the program that started this receiver says that the front end has ended. */
extern _Atomic int sl_front_end_ended;

/* Not 0: a second SIGINT or SIGTERM came, later than the first. */
extern _Atomic int sl_signal_again;

/* The second signal ends the process at once with status 130. */
void sl_signals_catch(void);
/* The second signal sets sl_signal_again, the third one ends the process. */
void sl_signals_catch_twice(void);
const char *sl_signal_name(int signal);

#endif
